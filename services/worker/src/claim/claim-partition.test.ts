import { describe, expect, it } from 'vitest';
import { mayReplace } from './claim-partition.ts';

describe('a claim in force', () => {
  const owner = { claim: 5, worker: 'other', released: false };
  it.each([
    ['nobody ever claimed', null, false, true],
    ['its worker is alive', owner, true, false],
    ['its worker is gone', owner, false, true],
    ['it was released', { ...owner, released: true }, true, true],
    ['it is our own', { ...owner, worker: 'me' }, true, true],
  ] as const)('[WRK-SUCCESSION] %s', (_case, state, isAlive, expected) => {
    expect(mayReplace(state, 'me', () => isAlive)).toBe(expected);
  });
});
