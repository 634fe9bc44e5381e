import { systemClock } from '@throughline/log';
import type { Log } from '@throughline/log';
import { createMemoryLog } from '@throughline/log/memory';
import { makeRecord, META_KEY } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { findLiving, readMetaFacts } from './meta-facts.ts';

const NEVER = new AbortController().signal;
const META = { topic: 'meta', partition: 0 } as const;

function epochRecord(log: Log, token: string, previous: string | null, clusterId = log.description.clusterId) {
  const value = JSON.stringify({ token, previous, clusterId, reason: `why ${token}` });
  return makeRecord('epoch', META_KEY.epoch(token), value, {});
}

function beat(worker: string, count = 1) {
  const value = JSON.stringify({ worker, epoch: 'aaaaaaaaaa', partitions: [0], leaving: false, beat: count });
  return makeRecord('worker', META_KEY.worker(worker), value, {});
}

describe('what meta says', () => {
  it('[CLI-EPOCH] of two epochs that follow the same one the first in the log counts; one of another cluster never does', async () => {
    const log = createMemoryLog({ clock: systemClock, partitions: 1, retentionMs: 60_000 });
    await log.append(META, [
      epochRecord(log, 'aaaaaaaaaa', null),
      epochRecord(log, 'bbbbbbbbbb', 'aaaaaaaaaa', 'another cluster'),
      epochRecord(log, 'cccccccccc', 'aaaaaaaaaa'),
      epochRecord(log, 'dddddddddd', 'aaaaaaaaaa'),
    ]);
    const { epochs, inForce } = await readMetaFacts(log, NEVER);
    expect(epochs.map(({ token, verdict }) => [token, verdict])).toEqual([
      ['aaaaaaaaaa', 'former'],
      ['bbbbbbbbbb', 'foreign'],
      ['cccccccccc', 'in-force'],
      ['dddddddddd', 'void'],
    ]);
    expect(inForce).toMatchObject({ token: 'cccccccccc', reason: 'why cccccccccc', offset: 2 });
    await log.close();
  });

  it('[CLI-OWNERS] a worker lives if a new sign of it comes in time, whatever this clock says; one that signed off does not', async () => {
    const log = createMemoryLog({ clock: systemClock, partitions: 1, retentionMs: 60_000 });
    await log.append(META, [beat('w-alive'), beat('w-killed'), beat('w-left')]);
    const facts = await readMetaFacts(log, NEVER);
    const finding = findLiving(log, systemClock, facts, 300, NEVER);
    await log.append(META, [beat('w-alive', 2), makeRecord('worker', META_KEY.worker('w-left'), null, {})]);
    const { names, skewMs } = await finding;
    expect([...names]).toEqual(['w-alive']);
    expect(Math.abs(skewMs ?? Infinity)).toBeLessThan(10_000);
    await log.close();
  });

  it('[CLI-OWNERS] whose last sign lies too far before the newest record is not waited for', async () => {
    const log = createMemoryLog({ clock: systemClock, partitions: 1, retentionMs: 60_000 });
    await log.append(META, [beat('w-old')]);
    const facts = await readMetaFacts(log, NEVER);
    const late = { ...facts, newestMs: facts.newestMs + 10_001 };
    const startMs = systemClock.monoMs();
    expect(await findLiving(log, systemClock, late, 10_000, NEVER)).toEqual({ names: new Set(), skewMs: null });
    expect(systemClock.monoMs() - startMs).toBeLessThan(5000);
    await log.close();
  });
});
