import { encodeText } from '@throughline/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shapeOf } from './json-tokens.ts';
import { hasRepeatedField } from './repeated-fields.ts';

const repeats = (text: string, levels = 3): boolean =>
  hasRepeatedField(
    shapeOf(encodeText(text), { depth: 100, parts: 10_000, nameLevels: levels }).namesAt,
    JSON.parse(text),
    levels,
  );

describe('names that stand twice', () => {
  it.each([
    ['{"a":1,"a":1}', true],
    ['{"a":1,"\\u0061":2}', true],
    ['{"__proto__":1,"__proto__":2}', true],
    ['{"a":{"b":{"c":1,"c":2}}}', true],
    ['{"a":[{"b":1,"b":2}]}', true],
    ['{"a":{"b":{"c":{"d":1,"d":2}}}}', false],
    ['{"a":":","b":"{\\"a\\":1,\\"a\\":2}"}', false],
    ['{"a":{"a":{"a":1}},"__proto__":{"a":1},"constructor":1}', false],
    ['[{"a":1},{"a":1}]', false],
    ['1', false],
  ])('[GW-TWICE] %s: %j', (text, isSo) => {
    expect(repeats(text)).toBe(isSo);
  });

  it('[GW-TWICE] nothing that a serializer writes has one, at any level', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(3), fc.integer({ min: 1, max: 8 }), (value, indent, levels) => {
        expect(repeats(JSON.stringify(value, null, indent), levels)).toBe(false);
      }),
    );
  });
});
