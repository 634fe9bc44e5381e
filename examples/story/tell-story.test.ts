import { spawnSync } from 'node:child_process';
import process from 'node:process';
import { describe, expect, it } from 'vitest';

const MODULE = new URL('./tell-story.ts', import.meta.url).href;

/** Tells a story whose body is `body`, as a process. */
function tell(body: string): { readonly code: number | null; readonly text: string } {
  const script = `import { tellStory } from '${MODULE}';
    await tellStory({ kept: 'All is well.', broken: 'It is not.' }, async (claim) => { ${body} });`;
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  return { code: status, text: stdout };
}

describe('a story', { timeout: 90_000 }, () => {
  it('[E2E-DEMO-VERDICT] ends with 0 and a kept verdict if every claim holds', () => {
    expect(tell(`claim('one', true); claim('two', true);`)).toEqual({
      code: 0,
      text: '   kept: one\n   kept: two\n\nVERDICT: kept. All is well.\n',
    });
  });

  it('[E2E-DEMO-VERDICT] ends with 1 and a broken verdict if one claim does not hold', () => {
    expect(tell(`claim('one', false); claim('two', true);`)).toEqual({
      code: 1,
      text: '   BROKEN: one\n   kept: two\n\nVERDICT: broken. It is not.\n',
    });
  });

  it('[E2E-DEMO-VERDICT] is broken by what it throws, and by claiming nothing', () => {
    expect(tell(`claim('one', true); throw new Error('it hangs');`)).toEqual({
      code: 1,
      text: '   kept: one\n\nit hangs\n\nVERDICT: broken. It is not.\n',
    });
    expect(tell('')).toEqual({ code: 1, text: '\nVERDICT: broken. It is not.\n' });
  });
});
