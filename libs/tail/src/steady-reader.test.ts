import { LogError } from '@throughline/log';
import type { Log } from '@throughline/log';
import { describe, expect, it } from 'vitest';
import { SteadyReader } from './steady-reader.ts';
import { createRig, EVENTS, OPEN, spyReads } from './testing/log-rig.ts';
import type { ReadCall, Rig } from './testing/log-rig.ts';
import { encodeText } from '@throughline/protocol';

const plain = (text: string) => ({ key: null, value: encodeText(text), headers: [] });
const read = { waitMs: 0, signal: OPEN };

async function createReader(rig: Rig, log: Log = rig.log) {
  await rig.append(plain('a'), plain('b'), plain('c'));
  return new SteadyReader(log, rig.clock, EVENTS);
}

describe('a steady reader', () => {
  it('[TAIL-STEADY] reads on from its position, each record once', async () => {
    const rig = createRig();
    const calls: ReadCall[] = [];
    const reader = await createReader(rig, spyReads(rig.log, calls));
    expect(await reader.read(0, read)).toMatchObject({
      kind: 'batch',
      next: 3,
      records: [{ offset: 0 }, { offset: 1 }, { offset: 2 }],
    });
    expect(await reader.read(3, read)).toMatchObject({ kind: 'batch', next: 3, records: [] });
    expect(calls.map(({ position }) => position)).toEqual([0, 3]);
  });

  it('[TAIL-STEADY] after a failure, and after a long sleep, it reads again what it had read last, and gives only what is new', async () => {
    const rig = createRig();
    let isFailing = false;
    const calls: ReadCall[] = [];
    const log = spyReads(rig.log, calls, () => {
      if (isFailing) throw new LogError('LOG_UNAVAILABLE', 'away');
    });
    const reader = await createReader(rig, log);
    await reader.read(0, read);
    isFailing = true;
    await expect(reader.read(3, read)).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    isFailing = false;
    await rig.append(plain('d'));
    expect(await reader.read(3, read)).toMatchObject({ kind: 'batch', next: 4, records: [{ offset: 3 }] });
    await rig.time.advance(5001);
    expect(await reader.read(4, read)).toMatchObject({ kind: 'batch', next: 4, records: [] });
    expect(calls.map(({ position }) => position)).toEqual([0, 3, 2, 3]);
  });

  it('[TAIL-STEADY] after a change of where answers come from it reads again what it had read last: a failure within a read is no less a failure', async () => {
    const rig = createRig();
    const calls: ReadCall[] = [];
    let source = 'one';
    const spied = spyReads(rig.log, calls);
    const moving: Log = {
      ...spied,
      read: async (from, position, options) => ({ ...(await spied.read(from, position, options)), source }),
    };
    const reader = await createReader(rig, moving);
    await reader.read(0, read);
    await reader.read(3, read);
    source = 'two';
    await rig.append(plain('d'));
    expect(await reader.read(3, read)).toMatchObject({ kind: 'batch', next: 4, records: [{ offset: 3 }] });
    expect(await reader.read(4, read)).toMatchObject({ kind: 'batch', next: 4, records: [] });
    expect(calls.map(({ position }) => position)).toEqual([0, 3, 3, 2, 4]);
    // The new leader lost its end, and has other records there by now.
    rig.log.controls.truncate(EVENTS, 2);
    await rig.append(plain('x'), plain('y'), plain('z'));
    source = 'three';
    expect(await reader.read(4, read)).toEqual({ kind: 'doubt' });
    expect(await reader.read(4, read)).toEqual({ kind: 'doubt' });
  });

  it('[TAIL-STEADY] a log that ends before the position is a doubt, until it has caught up with the same records', async () => {
    const rig = createRig();
    let end = 3;
    // A view that lags.
    const lagging: Log = {
      ...rig.log,
      async read(from, position, options) {
        if (position > end) throw new LogError('OFFSET_OUT_OF_RANGE', 'above the end', { start: 0, end });
        return rig.log.read(from, position, options);
      },
    };
    const reader = await createReader(rig, lagging);
    await reader.read(0, read);
    end = 2;
    expect(await reader.read(3, read)).toEqual({ kind: 'doubt' });
    expect(reader.isInDoubt()).toBe(true);
    end = 3;
    expect(await reader.read(3, read)).toMatchObject({ kind: 'batch', next: 3, records: [] });
    expect(reader.isInDoubt()).toBe(false);
  });

  it('[TAIL-STEADY] other records in the place of those that were read are a doubt for as long as they are there', async () => {
    const rig = createRig();
    const reader = await createReader(rig);
    await reader.read(0, read);
    rig.log.controls.truncate(EVENTS, 1);
    expect(await reader.read(3, read)).toEqual({ kind: 'doubt' });
    await rig.append(plain('x'), plain('y'), plain('z'), plain('z'));
    for (let time = 0; time < 3; time++) expect(await reader.read(3, read)).toEqual({ kind: 'doubt' });
  });

  it('[TAIL-STEADY] what retention took is a gap, or nothing to compare with, and no doubt', async () => {
    const rig = createRig();
    const reader = await createReader(rig);
    await reader.read(0, read);
    rig.log.controls.evictBefore(EVENTS, 3);
    await rig.time.advance(6000);
    expect(await reader.read(3, read)).toMatchObject({ kind: 'batch', next: 3, records: [] });
    await rig.append(plain('d'), plain('e'));
    rig.log.controls.evictBefore(EVENTS, 4);
    expect(await reader.read(3, read)).toEqual({ kind: 'gap', start: 4, end: 5 });
    expect(reader.isInDoubt()).toBe(false);
  });
});
