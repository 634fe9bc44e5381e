import { describe, expect, it } from 'vitest';
import { quoted } from './quoted.ts';

describe('foreign text in a reason', () => {
  it.each([
    ['stream.paused', 64, '"stream.paused"'],
    ['say "no"', 64, '"say \\"no\\""'],
    ['abcdef', 3, '"abc"'],
    // Each is six characters when it is escaped; found by fuzzing.
    ['\u0011'.repeat(48), 64, `"${'\\u0011'.repeat(16)}\\u0…`],
  ])('[REC-UNREADABLE] %j of at most %d characters: %s', (text, most, shown) => {
    expect(quoted(text, most)).toBe(shown);
  });
});
