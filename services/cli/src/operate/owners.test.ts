import { describe, expect, it } from 'vitest';
import { NO_META } from './meta-facts.ts';
import type { EpochEntry, MetaFacts } from './meta-facts.ts';
import { describeOwner, renderOwners } from './owners.ts';
import type { PartitionFacts } from './partition-facts.ts';

const inForce: EpochEntry = {
  ...{ token: 'aaaaaaaaaa', previous: null, reason: 'first start', clusterId: 'c' },
  ...{ offset: 0, atMs: 0, verdict: 'in-force' },
};

function metaWith(...saying: string[]): MetaFacts {
  const sign = (worker: string) => ({
    record: { worker, epoch: inForce.token, partitions: [0], leaving: false, beat: 1 },
    offset: 1,
    atMs: 0,
  });
  return { ...NO_META, inForce, workers: new Map(saying.map((worker) => [worker, sign(worker)])) };
}

const facts: PartitionFacts = {
  partition: 0,
  events: { start: 0, end: 40 },
  inbound: { start: 0, end: 30 },
  owner: { claim: 7, worker: 'w-a', released: false, sinceMs: 1000 },
  voidClaims: [],
  checkpoint: { offset: 38, atMs: 2000 },
  open: { count: 2, isMore: false, lowest: 25, lowestAtMs: 60_000, mostAttempts: 1, offsets: [25, 28] },
  unreadable: 0,
};
const living = new Set(['w-a', 'w-b']);
const committed = new Map([[0, 25]]);

describe('the owner of a partition', () => {
  it('[CLI-OWNERS] is who holds the claim in force; lag is from the committed offset to the end of inbound', () => {
    expect(describeOwner(0, facts, { meta: metaWith('w-a'), living, committed })).toEqual({
      partition: 0,
      state: 'owned',
      worker: 'w-a',
      claim: 7,
      sinceMs: 1000,
      lag: 5,
      committed: 25,
      inboundEnd: 30,
      open: 2,
      oldestOpenMs: 60_000,
      checkpoint: { offset: 38, atMs: 2000 },
      rivals: [],
      error: null,
    });
    expect(describeOwner(0, facts, { meta: metaWith('w-a'), living, committed: null })).toMatchObject({ lag: null });
  });

  it('[CLI-OWNERS] is told apart: nobody yet, left in order, gone without a word, contested, not readable', () => {
    const stateOf = (change: Partial<PartitionFacts>, meta = metaWith('w-a'), alive: Set<string> = living) =>
      describeOwner(0, { ...facts, ...change }, { meta, living: alive, committed });
    expect(stateOf({ owner: null }).state).toBe('none');
    expect(stateOf({ owner: { claim: 7, worker: 'w-a', released: true, sinceMs: null } }).state).toBe('released');
    expect(stateOf({}, metaWith(), new Set(['w-b'])).state).toBe('gone');
    expect(stateOf({ voidClaims: [{ offset: 9, worker: 'w-b' }] })).toMatchObject({
      state: 'contested',
      rivals: ['w-b'],
    });
    expect(stateOf({ voidClaims: [{ offset: 9, worker: 'w-dead' }] }).state).toBe('owned');
    expect(stateOf({}, metaWith('w-a', 'w-b'))).toMatchObject({ state: 'contested', rivals: ['w-b'] });
    expect(describeOwner(3, 'no leader', { meta: metaWith(), living, committed })).toMatchObject({
      partition: 3,
      state: 'unknown',
      error: 'no leader',
    });
  });

  it('[CLI-OWNERS] the table has a row a partition, ages of what waits, and what is wrong below', () => {
    const meta = metaWith('w-a', 'w-b');
    const rows = [
      describeOwner(0, facts, { meta, living, committed }),
      describeOwner(1, 'no leader', { meta, living, committed }),
    ];
    const lines = renderOwners(rows, 125_000).split('\n');
    expect(lines[1]?.split(/ {2,}/)).toEqual([
      '0',
      'contested',
      'w-a',
      '1970-01-01T00:00:01Z',
      '7',
      '5',
      '2',
      '1m 5s',
      '38, 2m 3s ago',
    ]);
    expect(lines[2]?.split(/ {2,}/)).toEqual(['1', 'unknown', '-', '-', '-', '-', '-', '-', '-']);
    expect(lines.slice(3)).toEqual(['partition 0: also claimed by w-b', 'partition 1: no leader', '']);
  });
});
