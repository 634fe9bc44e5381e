import { expect, it } from 'vitest';
import { eventually } from './eventually.ts';
import { isDivided, take } from './group-seats.ts';
import type { GetBench } from './harness.ts';

let groups = 0;

export function groupCases(bench: GetBench): void {
  const newGroup = (): string => `group-${process.pid}-${++groups}`;
  const settled = async (what: string, check: () => boolean): Promise<void> => {
    const { harness } = bench();
    await eventually(harness.clock, what, check, harness.groupMs);
  };

  it('[LOG-GROUP] the only member of a group gets every partition', async () => {
    const { log } = bench();
    const seat = await take(log, newGroup(), 'a');
    await settled('a has all', () => isDivided(log, [seat]));
    await seat.membership.leave();
  });

  it('[LOG-GROUP] members of several handles divide the partitions, and groups do not know each other', async () => {
    const { harness, log } = bench();
    const group = newGroup();
    const a = await take(log, group, 'a');
    const b = await take(await harness.open(), group, 'b');
    const apart = await take(log, newGroup(), 'a');
    await settled('a and b share', () => isDivided(log, [a, b]));
    await settled('another group has all', () => isDivided(log, [apart]));
    for (const seat of [a, b, apart]) await seat.membership.leave();
  });

  it('[LOG-GROUP-STICKY] a member that comes takes partitions, and none moves between those that stay', async () => {
    const { harness, log } = bench();
    const group = newGroup();
    const a = await take(log, group, 'a');
    const b = await take(await harness.open(), group, 'b');
    await settled('a and b share', () => isDivided(log, [a, b]));
    const before = { a: [...a.told()], b: [...b.told()] };
    const c = await take(await harness.open(), group, 'c');
    await settled('three share', () => isDivided(log, [a, b, c]));
    expect(before.a).toEqual(expect.arrayContaining([...a.told()]));
    expect(before.b).toEqual(expect.arrayContaining([...b.told()]));
    const stayed = { a: [...a.told()], b: [...b.told()] };
    await c.membership.leave();
    await settled('a and b share again', () => isDivided(log, [a, b]));
    expect([...a.told()]).toEqual(expect.arrayContaining(stayed.a));
    expect([...b.told()]).toEqual(expect.arrayContaining(stayed.b));
    for (const seat of [a, b]) await seat.membership.leave();
  });

  it('[LOG-GROUP-LEAVE] when a member leaves, or its log is closed, the others get its partitions', async () => {
    const { harness, log } = bench();
    const group = newGroup();
    const [second, third] = [await harness.open(), await harness.open()];
    const a = await take(log, group, 'a');
    const b = await take(second, group, 'b');
    const c = await take(third, group, 'c');
    await settled('three share', () => isDivided(log, [a, b, c]));
    await b.membership.leave();
    await b.membership.leave();
    expect(b.membership.assigned()).toEqual([]);
    await settled('two share', () => isDivided(log, [a, c]));
    await third.close();
    await settled('one has all', () => isDivided(log, [a]));
    expect(c.membership.assigned()).toEqual([]);
    await a.membership.leave();
  });

  it('[LOG-COMMIT] what a member commits is told to every handle, also a lower offset, and stays when it has left', async () => {
    const { harness, log } = bench();
    const group = newGroup();
    const other = await harness.open();
    expect([...(await other.committed(group))]).toEqual([]);
    const a = await take(log, group, 'a');
    await settled('a has all', () => isDivided(log, [a]));
    await Promise.all([a.membership.commit(0, 7), a.membership.commit(1, 0)]);
    expect([...(await other.committed(group))].sort()).toEqual([
      [0, 7],
      [1, 0],
    ]);
    await a.membership.commit(0, 5);
    await a.membership.leave();
    expect((await other.committed(group)).get(0)).toBe(5);
    expect([...(await other.committed(newGroup()))]).toEqual([]);
  });

  it('[LOG-COMMIT] a commit of a partition that is not assigned is refused and changes nothing', async () => {
    const { harness, log } = bench();
    const group = newGroup();
    const other = await harness.open();
    const a = await take(log, group, 'a');
    const b = await take(other, group, 'b');
    await settled('a and b share', () => isDivided(log, [a, b]));
    const [own = -1] = a.membership.assigned();
    await a.membership.commit(own, 3);
    await expect(b.membership.commit(own, 1)).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    await expect(a.membership.commit(own, -1)).rejects.toBeInstanceOf(RangeError);
    await a.membership.leave();
    await expect(a.membership.commit(own, 9)).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    expect([...(await log.committed(group))]).toEqual([[own, 3]]);
    await other.close();
    await expect(b.membership.commit(own, 9)).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(other.committed(group)).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('[LOG-GROUP-LEASE] the partitions of a member that was killed go to the others when its lease runs out', async ({
    skip,
  }) => {
    const { harness, log } = bench();
    if (harness.crash === undefined) return skip('cannot kill');
    const group = newGroup();
    const doomed = await harness.open();
    const a = await take(log, group, 'a');
    const b = await take(doomed, group, 'b');
    await settled('two share', () => isDivided(log, [a, b]));
    await harness.crash(doomed);
    await settled('a has all', () => isDivided(log, [a]));
    await a.membership.leave();
  });
}
