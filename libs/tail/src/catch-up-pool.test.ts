import { hasLogCode } from '@throughline/log';
import { describe, expect, it } from 'vitest';
import { CatchUpPool } from './catch-up-pool.ts';
import { OPEN } from './testing/log-rig.ts';

/** Work that ends when told to. */
function makeWork(running: string[], name: string) {
  let finish = (): void => undefined;
  let fail = (): void => undefined;
  const run = (): Promise<string> => {
    running.push(name);
    return new Promise((resolve, reject) => {
      finish = () => {
        running.splice(running.indexOf(name), 1);
        resolve(name);
      };
      fail = () => {
        running.splice(running.indexOf(name), 1);
        reject(new Error(name));
      };
    });
  };
  return {
    run,
    finish: () => {
      finish();
    },
    fail: () => {
      fail();
    },
  };
}
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('catch-up pool', () => {
  it('[TAIL-POOL] no more than the bound run at once, the others in the order they came', async () => {
    const running: string[] = [];
    const pool = new CatchUpPool(2);
    const works = ['a', 'b', 'c', 'd'].map((name) => makeWork(running, name));
    const results = works.map((work) => pool.run(work.run, OPEN));
    const late = makeWork(running, 'e');
    await tick();
    expect(running).toEqual(['a', 'b']);
    works[1]?.finish();
    await tick();
    expect(running).toEqual(['a', 'c']);
    results.push(pool.run(late.run, OPEN));
    await tick();
    expect(running).toEqual(['a', 'c']);
    works[0]?.finish();
    works[2]?.finish();
    await tick();
    expect(running).toEqual(['d', 'e']);
    works[3]?.finish();
    late.finish();
    expect(await Promise.all(results)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('[TAIL-POOL] work that fails frees its place', async () => {
    const running: string[] = [];
    const pool = new CatchUpPool(1);
    const [first, second] = [makeWork(running, 'a'), makeWork(running, 'b')];
    const failed = expect(pool.run(first.run, OPEN)).rejects.toThrow('a');
    const next = pool.run(second.run, OPEN);
    first.fail();
    await failed;
    await tick();
    expect(running).toEqual(['b']);
    second.finish();
    expect(await next).toBe('b');
  });

  it('[TAIL-POOL] who is aborted while it waits never runs and takes no place', async () => {
    const running: string[] = [];
    const pool = new CatchUpPool(1);
    const [a, b, c] = [makeWork(running, 'a'), makeWork(running, 'b'), makeWork(running, 'c')];
    const abort = new AbortController();
    const first = pool.run(a.run, OPEN);
    const second = pool.run(b.run, abort.signal).catch((error: unknown) => hasLogCode(error, 'ABORTED'));
    const third = pool.run(c.run, OPEN);
    abort.abort();
    expect(await second).toBe(true);
    expect(running).toEqual(['a']);
    const aborted = pool.run(b.run, abort.signal);
    await expect(aborted).rejects.toMatchObject({ code: 'ABORTED' });
    a.finish();
    await first;
    await tick();
    expect(running).toEqual(['c']);
    c.finish();
    await third;
    const after = makeWork(running, 'd');
    const fourth = pool.run(after.run, OPEN);
    await tick();
    expect(running).toEqual(['d']);
    after.finish();
    await fourth;
  });
});
