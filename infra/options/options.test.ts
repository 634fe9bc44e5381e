import { describe, expect, it } from 'vitest';
import { flag, jsonObject, names, numberAbove, text, wholeNumber } from './option.ts';
import { readOptions } from './read-options.ts';

const DIG = {
  command: 'npm run dig',
  does: 'Digs holes.',
  options: {
    depth: wholeNumber({ takes: '<metres>', says: 'how deep', from: 1, to: 9, absent: null }),
    hours: numberAbove({ takes: '<hours>', says: 'how long', from: 0, absent: 2 }),
    folder: text('<folder>', 'where', 'here'),
    tool: names('<tool>', 'with', ['spade', 'drill']),
    also: jsonObject('more', "'{}'"),
    deep: flag('deeper'),
  },
};
const dig = (...args: string[]): object => readOptions(DIG, args);
const wrong = (...args: string[]): string[] => {
  const read = readOptions(DIG, args);
  const end = 'wrong' in read ? read.wrong.indexOf('\n\nUsage: npm run dig') : -1;
  return 'wrong' in read && end > 0 ? read.wrong.slice(0, end).split('\n') : [`taken as ${JSON.stringify(read)}`];
};

describe('the options of the commands of this project', () => {
  it('[CLI-OPTIONS] values are read by the table, and what is absent has the value that the table says', () => {
    expect(dig()).toEqual({ values: { depth: null, hours: 2, folder: 'here', tool: [], also: {}, deep: false } });
    const args = [
      '--depth=3',
      '--hours',
      '0.5',
      '--folder',
      'x',
      '--tool',
      'drill,spade',
      '--also',
      '{"a":1}',
      '--deep',
    ];
    expect(dig(...args)).toEqual({
      values: { depth: 3, hours: 0.5, folder: 'x', tool: ['drill', 'spade'], also: { a: 1 }, deep: true },
    });
    expect(dig('--tool', 'spade', '--tool', 'drill', '--depth', '1', '--depth', '2')).toMatchObject({
      values: { tool: ['spade', 'drill'], depth: 2 },
    });
  });

  it('[CLI-OPTIONS] --help and -h win over everything else and show each option in a line of its own', () => {
    const help =
      'Usage: npm run dig [-- <options>]\nDigs holes.\n\n' +
      '  --depth <metres>   how deep\n' +
      '  --hours <hours>    how long\n' +
      '  --folder <folder>  where\n' +
      '  --tool <tool>      with: spade, drill\n' +
      '  --also <JSON>      more\n' +
      '  --deep             deeper\n' +
      '  --help             show this\n';
    for (const args of [['--help'], ['-h'], ['--depth', 'x', '--help']]) expect(dig(...args)).toEqual({ help });
  });

  it('[CLI-OPTIONS] all that is wrong is said at once, with what to write and the nearest name', () => {
    expect(wrong('--depht', '3', '--tool', 'spad', '--depth', '10', '--hours', '0')).toEqual([
      '--depht: there is no such option. Did you mean --depth?',
      '3: every value follows its option.',
      '--depth 10: must be a whole number from 1, at most 9',
      '--hours 0: must be a number above 0',
      '--tool spad: there is no "spad"; there are: spade, drill. Did you mean spade?',
    ]);
  });

  it('[CLI-OPTIONS] a value that is missing, empty or too much is refused', () => {
    expect(wrong('--depth')).toEqual(['--depth takes <metres>, which is missing.']);
    expect(wrong('--depth', '--deep')).toEqual(['--depth takes <metres>, which is missing.']);
    expect(wrong('--deep=yes')).toEqual(['--deep takes no value.']);
    expect(wrong('--folder', '')).toEqual(['--folder : must be <folder>, not empty']);
    expect(wrong('--depth', '1e1')).toEqual(['--depth 1e1: must be a whole number from 1, at most 9']);
    expect(wrong('--also', '[1]')).toEqual(["--also [1]: must be a JSON object, such as '{}'"]);
    expect(wrong('--constructor')).toEqual(['--constructor: there is no such option.']);
  });
});
