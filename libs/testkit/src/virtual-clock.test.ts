import { sleep } from '@throughline/log';
import { describe, expect, it } from 'vitest';
import { createSeededRandom } from './seeded-random.ts';
import { createVirtualTime } from './virtual-clock.ts';

describe('virtual time', () => {
  it('[SIM-TIME] timers run in the order of their time, and the clocks show it', async () => {
    const time = createVirtualTime({ seed: 1, startWallMs: 1000 });
    const clock = time.clock('a');
    const skewed = time.clock('b', { wallSkewMs: -300 });
    const seen: unknown[] = [];
    for (const ms of [30, 10, 20]) {
      clock.setTimer(ms, () => {
        seen.push([ms, clock.monoMs(), clock.wallMs(), skewed.wallMs()]);
      });
    }
    await time.advance(20);
    expect(seen).toEqual([
      [10, 10, 1010, 710],
      [20, 20, 1020, 720],
    ]);
    await time.advance(9.5);
    expect([seen.length, time.nowMs()]).toEqual([2, 29.5]);
    await time.advance(1);
    expect(seen.length).toBe(3);
  });

  it('[SIM-TIME] the same seed orders ties the same, and some other seed another way', async () => {
    const run = async (seed: number): Promise<string> => {
      const time = createVirtualTime({ seed });
      let order = '';
      for (const name of 'abcdefgh') {
        time.clock(name).setTimer(5, () => {
          order += name;
        });
      }
      await time.advance(5);
      return order;
    };
    const orders = await Promise.all([1, 1, 2, 3, 4].map(run));
    expect(orders[0]).toBe(orders[1]);
    expect(new Set(orders).size).toBe(4);
    for (const order of orders) expect([...order].sort().join('')).toBe('abcdefgh');
  });

  it('[SIM-TIME] all that follows from one timer without waiting has happened before the next runs', async () => {
    const time = createVirtualTime({ seed: 1 });
    const seen: string[] = [];
    const work = async (name: string): Promise<void> => {
      await sleep(time.clock(name), 5);
      for (let step = 0; step < 20; step++) await Promise.resolve();
      seen.push(`${name} first`);
      seen.push(`${name} second`);
    };
    await time.run(Promise.all([work('a'), work('b')]));
    expect(seen.map((line) => line.split(' ')[1])).toEqual(['first', 'second', 'first', 'second']);
    expect(seen[0]?.[0]).toBe(seen[1]?.[0]);
  });

  it('[SIM-TIME] a cancelled timer does not run', async () => {
    const time = createVirtualTime({ seed: 1 });
    let ran = false;
    const cancel = time.clock().setTimer(5, () => {
      ran = true;
    });
    cancel();
    expect(time.pending()).toBe(0);
    await time.advance(10);
    expect(ran).toBe(false);
  });

  it('[SIM-TIME] a paused process runs nothing until it is resumed, then what was due, while time and others go on', async () => {
    const time = createVirtualTime({ seed: 1 });
    const seen: string[] = [];
    const note = (process: string, ms: number): void => {
      time.clock(process).setTimer(ms, () => {
        seen.push(`${process}${ms}@${time.nowMs()}`);
      });
    };
    note('a', 10);
    note('a', 40);
    note('b', 20);
    time.pause('a');
    await time.advance(30);
    expect(seen).toEqual(['b20@20']);
    time.resume('a');
    await time.advance(20);
    expect(seen).toEqual(['b20@20', 'a10@30', 'a40@40']);
  });

  it('[SIM-TIME] a killed process runs nothing more and gets no new timers', async () => {
    const time = createVirtualTime({ seed: 1 });
    let ran = 0;
    const clock = time.clock('a');
    const count = (): void => {
      ran++;
    };
    clock.setTimer(5, count);
    time.pause('a');
    await time.advance(5);
    time.kill('a');
    clock.setTimer(1, count);
    time.resume('a');
    await time.advance(10);
    expect([ran, time.pending()]).toEqual([0, 0]);
  });

  it('[SIM-TIME] waiting for what can not come fails with the seed instead of hanging', async () => {
    const time = createVirtualTime({ seed: 77 });
    await expect(time.run(new Promise(() => undefined))).rejects.toThrow(/nothing is left.*seed 77/);
    const tick = (): void => {
      time.clock().setTimer(10, tick);
    };
    tick();
    await expect(time.runUntil(() => false, 1000)).rejects.toThrow(/not done after 1000 ms.*seed 77/);
    await expect(time.run(Promise.reject(new Error('the work')))).rejects.toThrow('the work');
    expect(await time.run(sleep(time.clock(), 5))).toBe(true);
  });

  it('[SIM-TIME] seeded chance repeats and is spread evenly', () => {
    const draw = (seed: number): number[] => {
      const random = createSeededRandom(seed);
      return Array.from({ length: 8000 }, () => random.below(8));
    };
    expect(draw(5)).toEqual(draw(5));
    expect(draw(5)).not.toEqual(draw(6));
    const counts = new Map<number, number>();
    for (const value of draw(5)) counts.set(value, (counts.get(value) ?? 0) + 1);
    for (let value = 0; value < 8; value++) expect(Math.abs((counts.get(value) ?? 0) - 1000)).toBeLessThan(150);
    expect(createSeededRandom(1).bytes(16)).toEqual(createSeededRandom(1).bytes(16));
  });
});
