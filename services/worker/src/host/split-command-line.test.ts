import { describe, expect, it } from 'vitest';
import { HostError } from './host.ts';
import { splitCommandLine } from './split-command-line.ts';

describe('splitCommandLine', () => {
  it.each([
    ['node server.js', ['node', 'server.js']],
    ['  npx   -y\tserver \n stdio ', ['npx', '-y', 'server', 'stdio']],
    [`echo 'a b' "c d"`, ['echo', 'a b', 'c d']],
    [`a'b'"c"d`, ['abcd']],
    [`x '' ""`, ['x', '', '']],
    [String.raw`a\ b \"q\" \'`, ['a b', '"q"', "'"]],
    [String.raw`"say \"hi\" \\ \n \$HOME"`, [String.raw`say "hi" \ \n $HOME`]],
    [String.raw`'back\slash "kept"'`, [String.raw`back\slash "kept"`]],
    ['a \\\n b', ['a', 'b']],
    ['echo $HOME | cat > f # no', ['echo', '$HOME', '|', 'cat', '>', 'f', '#', 'no']],
    [`run --json '{"a": 1}'`, ['run', '--json', '{"a": 1}']],
  ])('[HOST-STDIO-WORDS] splits %j as a POSIX shell does, without expanding anything', (line, words) => {
    expect(splitCommandLine(line)).toEqual(words);
  });

  it.each(["echo 'open", 'echo "open', 'echo \\', '', '  \t '])(
    '[HOST-STDIO-WORDS] refuses %j as a configuration fault',
    (line) => {
      expect(() => splitCommandLine(line)).toThrow(HostError);
    },
  );
});
