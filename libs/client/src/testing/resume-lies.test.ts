import { BrokenStream, checkStream, RawClient } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import type { Dialect, FaultName } from './fault-table.ts';
import { idsOf, playCall, textsOf } from './wire-rig.ts';

const E1 = 'event 1: naïve 漢字 ✓';
const E2 = 'event 2: naïve 漢字 ✓';
const E3 = 'event 3: naïve 漢字 ✓';
const E4 = 'event 4: naïve 漢字 ✓';
const E5 = 'event 5: naïve 漢字 ✓';
const E6 = 'event 6: naïve 漢字 ✓';
const RESULT = 'counted to 6';
const FOREIGN = [
  'foreign event 1',
  'foreign event 2',
  'foreign event 3',
  'foreign event 4',
  'foreign event 5',
  'foreign event 6',
  'foreign result',
];

/** What a resume after event 3 brings, and the numbers in the ids of `throughline` and `numbered` (less the first of their range). */
const REPLAYS: readonly (readonly [FaultName, readonly string[], readonly number[]])[] = [
  ['gap-continuous-ids', [E5, E6, RESULT], [4, 5, 6]],
  ['gap-in-ids', [E5, E6, RESULT], [5, 6, 7]],
  ['replay-from-zero', [E1, E2, E3, E4, E5, E6, RESULT], [1, 2, 3, 4, 5, 6, 7]],
  ['altered-payload', ['altered event', E5, E6, RESULT], [4, 5, 6, 7]],
  ['altered-boundary', ['altered event', E4, E5, E6, RESULT], [3, 4, 5, 6, 7]],
  ['repeated-boundary', [E3, E4, E5, E6, RESULT], [3, 4, 5, 6, 7]],
  ['reordered', [E5, E4, E6, RESULT], [5, 4, 6, 7]],
];
const FOREIGN_REPLAYS: readonly FaultName[] = ['session-resurrected', 'another-session', 'another-stream'];

const numberOf = (id: string, dialect: Dialect): number =>
  dialect === 'throughline' ? Number(id.split('.')[4]) : Number(id) % 100_000;
const labelOf = (id: string): string => id.split('.')[3]?.split('~')[0] ?? '';

describe.each(['throughline', 'numbered', 'opaque'] as const)('a resume answered by a liar, dialect %s', (dialect) => {
  it.each(REPLAYS)('[LIAR-WIRE] %s', async (fault, texts, numbers) => {
    await using played = await playCall(fault, dialect);
    expect(textsOf(played.call.items)).toEqual([E1, E2, E3]);
    const resumed = await played.resume();
    expect(resumed.status).toBe(200);
    expect(resumed.headers['mcp-session-id']).toBe(played.client.sessionId);
    expect(resumed.headers['x-mcp-replay-epoch']).toBe(played.call.headers['x-mcp-replay-epoch']);
    expect(textsOf(resumed.items)).toEqual(texts);
    if (dialect !== 'opaque') expect(idsOf(resumed.items).map((id) => numberOf(id, dialect))).toEqual(numbers);
    if (numbers[0] === 3) expect(idsOf(resumed.items)[0]).toBe(played.cursor);
  });

  it.each(FOREIGN_REPLAYS)('[LIAR-WIRE] %s', async (fault) => {
    await using played = await playCall(fault, dialect);
    const resumed = await played.resume();
    expect(resumed.headers['mcp-session-id']).toBe(played.client.sessionId);
    expect(resumed.headers['x-mcp-replay-epoch']).toBe(played.call.headers['x-mcp-replay-epoch']);
    expect(textsOf(resumed.items)).toEqual(FOREIGN);
    const own = new Set(idsOf(played.call.items));
    expect(idsOf(resumed.items).filter((id) => own.has(id))).toEqual([]);
  });

  it.each(['epoch-changed', 'session-id-changed'] as const)('[LIAR-WIRE] %s changes only its header', async (fault) => {
    await using played = await playCall(fault, dialect);
    const resumed = await played.resume();
    const isSame = (name: string): boolean => resumed.headers[name] === played.call.headers[name];
    expect(played.call.headers['mcp-session-id']).toBe(played.client.sessionId);
    expect(isSame('mcp-session-id')).toBe(fault === 'epoch-changed');
    expect(isSame('x-mcp-replay-epoch')).toBe(fault === 'session-id-changed');
    expect(resumed.headers['mcp-session-id']).toMatch(/^[\x21-\x7e]+$/);
    expect(textsOf(resumed.items)).toEqual([E4, E5, E6, RESULT]);
  });

  it.each([...REPLAYS.map(([fault]) => fault), ...FOREIGN_REPLAYS, 'epoch-changed', 'session-id-changed'] as const)(
    '[LIAR-ONE] %s is shown once; the next resume is honest',
    async (fault) => {
      await using played = await playCall(fault, dialect);
      await played.resume();
      expect(played.server.liedAtMs()).not.toBeNull();
      const honest = await played.resume();
      expect(honest.headers['mcp-session-id']).toBe(played.client.sessionId);
      expect(honest.headers['x-mcp-replay-epoch']).toBe(played.call.headers['x-mcp-replay-epoch']);
      expect(textsOf(honest.items)).toEqual([E4, E5, E6, RESULT]);
    },
  );
});

describe('what the ids of Throughline prove of a lie', () => {
  const faultOf = async (fault: FaultName): Promise<string> => {
    await using played = await playCall(fault, 'throughline');
    const resumed = await played.resume();
    try {
      checkStream(played.client.sessionId, [...played.call.items, ...resumed.items]);
    } catch (error) {
      if (error instanceof BrokenStream) return error.fault;
      throw error;
    }
    return 'none';
  };

  it.each([
    ['gap-continuous-ids', 'content'],
    ['gap-in-ids', 'lost'],
    ['replay-from-zero', 'repeated'],
    ['altered-payload', 'content'],
    ['reordered', 'lost'],
    ['session-resurrected', 'malformed'],
    ['another-session', 'malformed'],
    ['another-stream', 'malformed'],
    ['epoch-changed', 'none'],
    ['session-id-changed', 'none'],
  ] as const)('[LIAR-DIALECT] %s: %s', async (fault, proved) => {
    expect(await faultOf(fault)).toBe(proved);
  });

  it('[LIAR-WIRE] a resurrected session has true ids of a stream of its own; those of another session are not', async () => {
    await using fresh = await playCall('session-resurrected', 'throughline');
    const resurrected = await fresh.resume();
    expect(checkStream(fresh.client.sessionId, resurrected.items)).toHaveLength(7);
    expect(labelOf(idsOf(resurrected.items)[0] ?? '')).toMatch(/^r/);
    expect(labelOf(idsOf(resurrected.items)[0] ?? '')).not.toBe(labelOf(fresh.cursor));
    await using other = await playCall('another-session', 'throughline');
    const foreign = await other.resume();
    expect(() => checkStream(other.client.sessionId, foreign.items)).toThrow(BrokenStream);
    await using stream = await playCall('another-stream', 'throughline');
    const standalone = await stream.resume();
    expect(labelOf(idsOf(standalone.items)[0] ?? '')).toMatch(/^s/);
    expect(checkStream(stream.client.sessionId, standalone.items)).toHaveLength(7);
  });
});

describe.each(['throughline', 'numbered', 'opaque'] as const)('a resume without a stream, dialect %s', (dialect) => {
  it.each([
    ['status-409', 409, undefined],
    ['status-503', 503, '1'],
  ] as const)('[LIAR-WIRE] %s comes once', async (fault, status, retryAfter) => {
    await using played = await playCall(fault, dialect);
    const refused = await played.resume();
    expect([refused.status, refused.headers['retry-after']]).toEqual([status, retryAfter]);
    expect(textsOf((await played.resume()).items)).toEqual([E4, E5, E6, RESULT]);
  });

  it.each([
    ['status-204', 204, undefined],
    ['status-405', 405, 'POST'],
  ] as const)('[LIAR-WIRE] %s comes for ever, and calls are served', async (fault, status, allow) => {
    await using played = await playCall(fault, dialect);
    for (let attempt = 0; attempt < 3; attempt++) {
      const refused = await played.resume();
      expect([refused.status, refused.headers['allow'], refused.items]).toEqual([status, allow, []]);
    }
    const call = await played.client.callTool(played.server.url, 'echo', { text: 'here' });
    await call.closed;
    expect(textsOf(call.items)).toEqual(['here']);
  });

  it('[LIAR-WIRE] status-404: the session is gone for everything that names it, and a new one is served', async () => {
    await using played = await playCall('status-404', dialect);
    expect((await played.resume()).status).toBe(404);
    expect((await played.resume()).status).toBe(404);
    expect((await played.client.callTool(played.server.url, 'echo')).status).toBe(404);
    const anew = await RawClient.connect(played.server.url);
    expect(anew.sessionId).not.toBe(played.client.sessionId);
  });

  it('[LIAR-WIRE] status-401: nothing is served any more', async () => {
    await using played = await playCall('status-401', dialect);
    const refused = await played.resume();
    expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, 'Bearer error="invalid_token"']);
    expect((await played.resume()).status).toBe(401);
    await expect(RawClient.connect(played.server.url)).rejects.toThrow('initialize: 401');
  });

  it('[LIAR-WIRE] html-page: 200, a page, once', async () => {
    await using played = await playCall('html-page', dialect);
    const page = await played.resume();
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(await page.text()).toMatch(/^<!doctype html>/);
    expect(textsOf((await played.resume()).items)).toEqual([E4, E5, E6, RESULT]);
  });

  it('[LIAR-WIRE] empty-200: a stream without a byte, for ever', async () => {
    await using played = await playCall('empty-200', dialect);
    for (let attempt = 0; attempt < 4; attempt++) {
      const empty = await played.resume();
      expect([empty.status, empty.headers['content-type'], empty.items]).toEqual([200, 'text/event-stream', []]);
      expect(await empty.closed).toBe('end');
    }
  });

  it('[LIAR-WIRE] dropped-twice: both connections are cut, the second before any id', async () => {
    await using played = await playCall('dropped-twice', dialect);
    expect(await played.call.closed).toBe('cut');
    const again = await played.resume();
    expect([again.status, await again.closed, again.lastId()]).toEqual([200, 'cut', undefined]);
    expect(textsOf((await played.resume()).items)).toEqual([E4, E5, E6, RESULT]);
  });

  it('[LIAR-WIRE] redirect-same-origin: another path answers well', async () => {
    await using played = await playCall('redirect-same-origin', dialect);
    const moved = await played.resume();
    expect([moved.status, moved.headers['location']]).toEqual([307, '/moved/mcp']);
    const there = await played.client.resume(new URL('/moved/mcp', played.server.url).href, played.cursor);
    await there.closed;
    expect(textsOf(there.items)).toEqual([E4, E5, E6, RESULT]);
  });

  it('[LIAR-WIRE] redirect-other-origin: an impostor answers, and is told apart in the log', async () => {
    await using played = await playCall('redirect-other-origin', dialect);
    const moved = await played.resume();
    const target = moved.headers['location'] ?? '';
    expect(moved.status).toBe(307);
    expect(new URL(target).origin).not.toBe(new URL(played.server.url).origin);
    const there = await played.client.resume(target, played.cursor);
    await there.closed;
    expect(textsOf(there.items)).toEqual(FOREIGN);
    expect(played.server.requests.at(-1)).toMatchObject({ origin: 'impostor', lastEventId: played.cursor });
  });
});
