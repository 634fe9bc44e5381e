import { encodeText } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { LogError } from './errors.ts';
import { createManualClock } from './manual-clock.ts';
import { createMemoryLog } from './memory/index.ts';
import type { Log } from './port.ts';
import { openView } from './view.ts';
import type { ViewFinding } from './view.ts';

const META = { topic: 'meta', partition: 0 } as const;
const record = (key: string) => ({ key: encodeText(key), value: encodeText('x'), headers: [] });

/** A view that has read a, b and c. `isDown`: reads fail, so that what happens meanwhile happens behind its back. */
async function createRig() {
  const clock = createManualClock();
  const log = createMemoryLog({ clock });
  const rig: { isDown: boolean; lagsBy: number; asleep: Promise<void> | null; source: string; madeAnew: number } = {
    isDown: false,
    lagsBy: 0,
    asleep: null,
    source: 'one',
    madeAnew: 0,
  };
  const shown: Log = {
    ...log,
    async read(...args) {
      await rig.asleep;
      if (rig.isDown) throw new LogError('LOG_UNAVAILABLE', 'down');
      return { ...(await log.read(...args)), source: rig.source, madeAnew: rig.madeAnew };
    },
    async bounds(of) {
      const { start, end } = await log.bounds(of);
      return { start, end: end - rig.lagsBy };
    },
  };
  const keys: string[] = [];
  const findings: (readonly [ViewFinding, number])[] = [];
  const view = openView({
    log: shown,
    clock,
    of: META,
    apply: (key) => keys.push(key),
    onFinding: (finding, readMs) => findings.push([finding, readMs]),
  });
  await log.append(META, [record('a'), record('b'), record('c')]);
  await clock.advance(10);
  expect(keys).toEqual(['a', 'b', 'c']);
  const fail = async (): Promise<void> => {
    rig.isDown = true;
    await clock.advance(1100);
  };
  /** The topic is made anew, and grows beyond the view, while a read of it is held up. Returns the way to let it go. */
  const regrowAsleep = async (): Promise<() => void> => {
    let wake = (): void => undefined;
    rig.asleep = new Promise((resolve) => (wake = resolve));
    await clock.advance(1100);
    log.controls.recreate('meta');
    await log.append(META, [record('q'), record('r'), record('s'), record('t')]);
    return wake;
  };
  const named = (): ViewFinding[] => findings.map(([finding]) => finding);
  return { clock, log, rig, keys, findings, named, view, fail, regrowAsleep };
}

async function isSettled(work: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const done = (): void => {
    settled = true;
  };
  void work.then(done, done);
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
  return settled;
}

describe('a compacted topic that is not what was read of it', () => {
  it('[LOG-VIEW-LOST] made anew and grown beyond the position: the view tells it and begins at the start', async () => {
    const { clock, log, rig, keys, named, view, fail } = await createRig();
    await fail();
    log.controls.recreate('meta');
    await log.append(META, [record('q'), record('r'), record('s'), record('t')]);
    rig.isDown = false;
    await clock.advance(600);
    await view.sync();
    expect(keys.slice(3).filter((key) => key !== 'probe')).toEqual(['q', 'r', 's', 't']);
    expect(named()).toEqual(['doubt', 'lost', 'rebuilt']);
    await view.close();
  });

  it('[LOG-VIEW-LOST] made anew and shorter: proved by an append that was acknowledged below what was read', async () => {
    const { clock, log, rig, keys, named, view, fail } = await createRig();
    await fail();
    log.controls.recreate('meta');
    await log.append(META, [record('q')]);
    rig.isDown = false;
    const synced = view.sync();
    await clock.advance(1000);
    await synced;
    expect(keys.slice(3).filter((key) => key !== 'probe')).toEqual(['q']);
    expect(named()).toEqual(['doubt', 'lost', 'rebuilt']);
    expect(view.position()).toBe((await log.bounds(META)).end);
    await view.close();
  });

  it('[LOG-VIEW-LOST] lost its end and got another: what was applied of it is not mixed with what came after', async () => {
    const { clock, log, rig, keys, named, view, fail } = await createRig();
    await fail();
    log.controls.truncate(META, 1);
    await log.append(META, [record('x'), record('y'), record('z')]);
    rig.isDown = false;
    await clock.advance(1000);
    await view.sync();
    expect(keys.slice(3).filter((key) => key !== 'probe')).toEqual(['a', 'x', 'y', 'z']);
    expect(named()).toEqual(['doubt', 'lost', 'rebuilt']);
    await view.close();
  });

  it('[LOG-VIEW-LOST] a failure within a read, told by its source, is a reason to look as well', async () => {
    const { clock, rig, keys, named, view, regrowAsleep } = await createRig();
    const wake = await regrowAsleep();
    rig.source = 'two';
    wake();
    await clock.advance(600);
    await view.sync();
    expect(keys.slice(3).filter((key) => key !== 'probe')).toEqual(['q', 'r', 's', 't']);
    expect(named()).toEqual(['doubt', 'lost', 'rebuilt']);
    await view.close();
  });

  it('[LOG-VIEW-LOST] that the topic was made anew, told by a read, is proof, also when what came after was applied before', async () => {
    const { clock, rig, keys, named, view, regrowAsleep } = await createRig();
    const wake = await regrowAsleep();
    wake();
    // Nothing failed, and nothing else shows it: what stands at its position is taken for what comes next.
    await clock.advance(100);
    expect([keys.slice(3), named()]).toEqual([['t'], []]);
    rig.madeAnew = 1;
    await clock.advance(2000);
    await view.sync();
    expect(keys.slice(4)).toEqual(['q', 'r', 's', 't']);
    expect(named()).toEqual(['lost', 'rebuilt']);
    await view.close();
  });

  it('[LOG-VIEW-AGAIN] one that is told to begins anew, is not synchronized until all is applied, and says that it is neither lost nor in doubt', async () => {
    const { clock, log, keys, named, view } = await createRig();
    await log.append(META, [record('d')]);
    view.reread();
    const applied = view.sync().then(() => keys.slice(-4));
    await clock.advance(2000);
    expect(await applied).toEqual(['a', 'b', 'c', 'd']);
    expect([keys.length, named()]).toEqual([3 + 4, ['again', 'rebuilt']]);
    await view.close();
  });

  it('[LOG-VIEW-AGAIN] one that is told to doubt looks before it is synchronized, and goes on where it was', async () => {
    const { clock, log, keys, named, view } = await createRig();
    view.doubt();
    const synced = view.sync();
    expect(await isSettled(synced)).toBe(false);
    await clock.advance(2000);
    await synced;
    await log.append(META, [record('d')]);
    await clock.advance(100);
    expect([keys, named()]).toEqual([['a', 'b', 'c', 'd'], []]);
    await view.close();
  });

  it('[LOG-VIEW-LOST] a view that slept looks before it goes on', async () => {
    const { clock, keys, named, view, regrowAsleep } = await createRig();
    const wake = await regrowAsleep();
    await clock.advance(7000);
    wake();
    await clock.advance(600);
    await view.sync();
    expect(keys.slice(3).filter((key) => key !== 'probe')).toEqual(['q', 'r', 's', 't']);
    expect(named()).toEqual(['doubt', 'lost', 'rebuilt']);
    await view.close();
  });

  it('[LOG-VIEW-DOUBT] while the log ends before the position, the view is not complete, and says so once', async () => {
    const { clock, rig, named, view, log } = await createRig();
    rig.lagsBy = 4;
    const synced = view.sync();
    await clock.advance(1700);
    expect(await isSettled(synced)).toBe(false);
    expect(named()).toEqual(['doubt']);
    rig.lagsBy = 0;
    await clock.advance(1500);
    await synced;
    // Probes were acknowledged behind what was read: that is no proof, and nothing is applied twice.
    expect(named()).toEqual(['doubt', 'holds']);
    expect((await log.bounds(META)).end).toBeGreaterThan(3);
    await view.close();
  });

  it('[LOG-VIEW-RETRY] a failure alone leads to nothing but a look', async () => {
    const { clock, log, rig, keys, named, view, fail } = await createRig();
    await fail();
    await log.append(META, [record('d')]);
    rig.isDown = false;
    await clock.advance(600);
    expect(keys).toEqual(['a', 'b', 'c', 'd']);
    expect(named()).toEqual([]);
    await view.close();
  });

  it('[LOG-VIEW-LOST] a record that compaction took proves nothing', async () => {
    const { clock, log, rig, keys, named, view, fail } = await createRig();
    await fail();
    await log.append(META, [record('c'), record('d')]);
    log.controls.compact('meta');
    rig.isDown = false;
    await clock.advance(600);
    await view.sync();
    expect(keys).toEqual(['a', 'b', 'c', 'c', 'd']);
    expect(named()).toEqual([]);
    await view.close();
  });
});
