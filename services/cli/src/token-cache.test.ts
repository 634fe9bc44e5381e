import { describe, expect, it } from 'vitest';
import { createTokenCache } from './token-cache.ts';

function counting(lifeMs: number | null) {
  let nowMs = 0;
  let asked = 0;
  let failing = false;
  const token = createTokenCache(
    async () => {
      asked++;
      await Promise.resolve();
      if (failing) throw new Error('the endpoint is away');
      return { token: `T${asked}`, lifeMs };
    },
    { monoMs: () => nowMs },
  );
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  const fail = (is: boolean): void => {
    failing = is;
  };
  return { pass, token, asked: () => asked, fail };
}

describe('createTokenCache', () => {
  it('[CLI-KAFKA-TOKEN] a token is asked for once and used for four fifths of its life', async () => {
    const { pass, token, asked } = counting(100_000);
    expect(await token()).toBe('T1');
    pass(79_999);
    expect(await token()).toBe('T1');
    expect(asked()).toBe(1);
    pass(1);
    expect(await token()).toBe('T2');
    expect(asked()).toBe(2);
  });

  it('[CLI-KAFKA-TOKEN] all who ask at once wait for one answer', async () => {
    const { token, asked } = counting(100_000);
    expect(await Promise.all([token(), token(), token()])).toEqual(['T1', 'T1', 'T1']);
    expect(asked()).toBe(1);
  });

  it('[CLI-KAFKA-TOKEN] a failure is told to all who wait and not kept', async () => {
    const { token, asked, fail } = counting(100_000);
    fail(true);
    expect((await Promise.allSettled([token(), token()])).map(({ status }) => status)).toEqual([
      'rejected',
      'rejected',
    ]);
    fail(false);
    expect(await token()).toBe('T2');
    expect(asked()).toBe(2);
  });

  it('[CLI-KAFKA-TOKEN] while no new one can be had, the old one serves to its end and no longer', async () => {
    const { pass, token, asked, fail } = counting(100_000);
    await token();
    fail(true);
    pass(90_000);
    expect(await token()).toBe('T1');
    expect(asked()).toBe(2);
    pass(9000);
    await expect(token()).rejects.toThrow('the endpoint is away');
    fail(false);
    expect(await token()).toBe('T4');
  });

  it('[CLI-KAFKA-TOKEN] a token whose life is not told is used once', async () => {
    const { token } = counting(null);
    expect([await token(), await token()]).toEqual(['T1', 'T2']);
  });
});
