import { encodeText } from '@throughline/protocol';
import { expect, it } from 'vitest';
import type { Log, PartitionRef } from '../port.ts';
import { openView } from '../view.ts';
import type { View } from '../view.ts';
import { eventually } from './eventually.ts';
import type { GetBench, LogHarness } from './harness.ts';
import { endOf, readAll, textOf, textRecord } from './records.ts';

const META: PartitionRef = { topic: 'meta', partition: 0 };

/** The newest value of each key; a tombstone removes it. */
function openMap({ clock }: LogHarness, log: Log, of: PartitionRef): { view: View; map: Map<string, string> } {
  const map = new Map<string, string>();
  const view = openView({
    log,
    clock,
    of,
    onFinding(finding) {
      if (finding === 'lost') map.clear();
    },
    apply(key, record) {
      if (record.value === null) map.delete(key);
      else map.set(key, textOf(record));
    },
  });
  return { view, map };
}

const tombstone = (key: string): { key: Uint8Array; value: null; headers: [] } => ({
  key: encodeText(key),
  value: null,
  headers: [],
});

export function viewCases(bench: GetBench): void {
  it('[LOG-VIEW] a view holds the newest record of each key and follows what other handles append', async () => {
    const { harness, log } = bench();
    const other = await harness.open();
    await log.append(META, [textRecord('1', 'a'), textRecord('1', 'b'), textRecord('2', 'a')]);
    const { view, map } = openMap(harness, log, META);
    await view.sync();
    expect(Object.fromEntries(map)).toMatchObject({ a: '2', b: '1' });
    await other.append(META, [tombstone('b'), textRecord('1', 'c')]);
    await view.sync();
    expect(Object.fromEntries(map)).toMatchObject({ a: '2', c: '1' });
    expect(map.has('b')).toBe(false);
    await other.append(META, [textRecord('3', 'a')]);
    await eventually(harness.clock, 'the view follows by itself', () => map.get('a') === '3');
    await view.close();
  });

  it('[LOG-COMPACT-VIEW] a view is the same before and after compaction, and none that reads across it fails', async ({
    skip,
  }) => {
    const { harness, log } = bench();
    if (harness.compact === undefined) return skip('no compaction');
    const from = await endOf(log, META);
    const early = openMap(harness, log, META);
    for (let round = 0; round < 5; round++)
      await log.append(
        META,
        ['a', 'b', 'c', 'd'].map((key) => textRecord(`${key}${round}`, key)),
      );
    await log.append(META, [tombstone('b'), textRecord('new', 'e')]);
    await early.view.sync();
    const middle = (await log.read(META, from, { maxBytes: 1 })).next;
    await harness.compact('meta');
    const other = await harness.open();
    for (const handle of [log, other]) {
      const late = openMap(harness, handle, META);
      await late.view.sync();
      expect(Object.fromEntries(late.map)).toEqual(Object.fromEntries(early.map));
      expect(Object.fromEntries(late.map)).toMatchObject({ a: 'a4', c: 'c4', d: 'd4', e: 'new' });
      await late.view.close();
      const kept = await readAll(handle, META, middle);
      expect(kept.map((record) => record.offset)).toEqual(kept.map((record) => record.offset).sort((x, y) => x - y));
      expect(kept.filter((record) => record.value !== null).map(textOf)).toEqual(['a4', 'c4', 'd4', 'new']);
    }
    await log.append(META, [textRecord('a5', 'a')]);
    await early.view.sync();
    expect(early.map.get('a')).toBe('a5');
    await early.view.close();
  });

  it('[LOG-COMPACT-KEY] a record without a key is refused on a compacted topic', async () => {
    const { log } = bench();
    for (const ref of [META, { topic: 'sessions', partition: 0 } as const])
      await expect(log.append(ref, [{ key: null, value: encodeText('x'), headers: [] }])).rejects.toMatchObject({
        code: 'APPEND_REFUSED',
      });
  });
}
