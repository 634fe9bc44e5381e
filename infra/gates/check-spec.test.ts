import { describe, expect, it } from 'vitest';
import { checkSpec } from './check-spec.ts';

const SPEC = '# Spec\n\n| id | rule |\n| --- | --- |\n| AB-ONE | first |\n| `AB-TWO` | second |\n';

function faults(spec: string, ...texts: string[]): readonly string[] {
  return checkSpec(
    spec,
    texts.map((text, index) => ({ file: `t${index}.test.ts`, text })),
  ).faults;
}

// Assembled, so that the gate does not take these for citations of its own.
const cite = (id: string): string => `[${id}]`;

describe('checkSpec', () => {
  it('[CLI-GATE-SPEC] rules and citations that match are no fault', () => {
    const text = `it('${cite('AB-ONE')} a', f); describe("${cite('AB-TWO')}", () => { test.each([1])(\`${cite('AB-ONE')} \${x}\`, f) })`;
    expect(faults(SPEC, text)).toEqual([]);
    const file = { file: 'a.test.ts', text };
    expect(checkSpec(SPEC, [file])).toMatchObject({ rules: 2, citations: 3 });
  });

  it('[CLI-GATE-SPEC] a rule without a test is a fault', () => {
    expect(faults(SPEC, `it('${cite('AB-ONE')} a', f)`)).toEqual([
      expect.stringMatching(/^AB-TWO is cited by no test/),
    ]);
  });

  it('[CLI-GATE-SPEC] a cited id that is no rule is a fault that names the file', () => {
    const text = `it('${cite('AB-ONE')}${cite('AB-TWO')}${cite('AB-OLD')} a', f)`;
    expect(faults(SPEC, text)).toEqual([expect.stringMatching(/^\[AB-OLD\] is cited in t0\.test\.ts/)]);
  });

  it('[CLI-GATE-SPEC] comments, bodies and tests that do not run are no citations', () => {
    const text = `// it('${cite('AB-ONE')}')
      it('no rule', () => { expect('${cite('AB-ONE')}').toBe(1) });
      it.skip('${cite('AB-ONE')}', f); it.todo('${cite('AB-ONE')}');
      describe.skip('x', () => { it('${cite('AB-ONE')}', f) });
      other('${cite('AB-ONE')}');`;
    expect(faults(SPEC, text, `it('${cite('AB-TWO')}', f)`)).toEqual([
      expect.stringMatching(/^AB-ONE is cited by no test/),
    ]);
  });

  it('[CLI-GATE-SPEC] tests that run only in one lane count', () => {
    const text = `it.runIf(deep)('${cite('AB-ONE')}', f); it.skipIf(x)('${cite('AB-TWO')}', f)`;
    expect(faults(SPEC, text)).toEqual([]);
  });

  it('[CLI-GATE-SPEC] an id that stands twice and a rule without words are faults', () => {
    const spec = `${SPEC}| AB-ONE | again |\n| AB-TRE | |\n`;
    const text = `it('${cite('AB-ONE')}${cite('AB-TWO')}${cite('AB-TRE')}', f)`;
    expect(faults(spec, text)).toEqual([
      expect.stringMatching(/^AB-ONE stands twice/),
      expect.stringMatching(/^AB-TRE says nothing/),
    ]);
  });
});
