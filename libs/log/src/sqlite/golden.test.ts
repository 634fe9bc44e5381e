import { chmodSync, copyFileSync, existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { encodeText } from '@throughline/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../clock.ts';
import { readAll, showRecord } from '../conformance/records.ts';
import { systemClock } from '../system.ts';
import { makeScratchDirectory } from './scratch-directory.ts';
import type { ScratchDirectory } from './scratch-directory.ts';

/** Made by `fixtures/v1/make-log.ts`, once. */
const GOLDEN = fileURLToPath(new URL('../../../../fixtures/v1/log.db', import.meta.url));
const EVENTS = { topic: 'events', partition: 2 } as const;
const META = { topic: 'meta', partition: 0 } as const;
/** 2026-01-01T00:00:00Z */
const BASE_MS = 1_767_225_600_000;
/** It is still that day: nothing is due. */
const clock: Clock = { ...systemClock, wallMs: () => BASE_MS + 10 };

let scratch: ScratchDirectory;
beforeEach(() => {
  scratch = makeScratchDirectory();
  copyFileSync(GOLDEN, scratch.file);
  chmodSync(scratch.file, 0o600);
});
afterEach(async () => {
  await scratch.dispose();
});

describe('sqlite log: format v1', () => {
  it('[LOG-FILE-V1] a file of format v1 is read record by record as it was written', async () => {
    expect(existsSync(`${GOLDEN}-wal`)).toBe(false);
    const { log } = await scratch.open({ clock });
    expect(log.description).toMatchObject({ clusterId: '4dcb1055-32cd-4f99-9979-0bfdd9862e7d', partitions: 3 });
    expect(await log.bounds(EVENTS)).toEqual({ start: 1, end: 4 });
    await expect(log.read(EVENTS, 0)).rejects.toMatchObject({
      code: 'OFFSET_OUT_OF_RANGE',
      details: { start: 1, end: 4 },
    });
    expect((await readAll(log, EVENTS, 1)).map(showRecord)).toEqual([
      {
        offset: 1,
        timestampMs: BASE_MS + 1,
        record: {
          key: '0x73657373696f6e',
          value: '0x7b226a736f6e727063223a22322e30222c226d6574686f64223a2270696e67227d',
          headers: [
            ['v', '0x31'],
            ['type', '0x6d6370'],
          ],
        },
      },
      { offset: 2, timestampMs: BASE_MS + 1, record: { key: '0x', value: null, headers: [] } },
      {
        offset: 3,
        timestampMs: BASE_MS + 2,
        record: {
          key: null,
          value: '0x00ffc328',
          headers: [
            ['b', '0x31'],
            ['a', '0x'],
            ['b', '0x32'],
          ],
        },
      },
    ]);
    expect((await readAll(log, META, 0)).map(showRecord)).toEqual([
      { offset: 2, timestampMs: BASE_MS + 2, record: { key: '0x61', value: '0x32', headers: [] } },
      { offset: 3, timestampMs: BASE_MS + 2, record: { key: '0x62', value: null, headers: [] } },
    ]);
    const sessions = await readAll(log, { topic: 'sessions', partition: 1 }, 0);
    expect(sessions.map(showRecord)).toEqual([
      { offset: 0, timestampMs: BASE_MS + 2, record: { key: '0x73', value: '0x6f70656e', headers: [] } },
    ]);
  });

  it('[LOG-FILE-V1] a file of format v1 goes on where it ended, and its compacted keys are still known', async () => {
    const { log, controls } = await scratch.open({ clock });
    const appended = await log.append(EVENTS, [{ key: null, value: encodeText('next'), headers: [] }]);
    expect(appended.offsets).toEqual([4]);
    expect(appended.timestampMs).toBe(BASE_MS + 10);
    await log.append(META, [{ key: encodeText('a'), value: encodeText('3'), headers: [] }]);
    await controls.sweep();
    expect((await readAll(log, META, 0)).map(({ offset }) => offset)).toEqual([3, 4]);
    const seat = await log.join({ group: 'workers', member: 'two', onChange: () => undefined });
    expect(seat.assigned()).toEqual([0, 1, 2]);
  });
});
