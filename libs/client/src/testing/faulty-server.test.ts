import { checkStream, RawClient, waitUntil } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { startFaultyServer } from './faulty-server.ts';
import { idsOf, playCall, textsOf } from './wire-rig.ts';

const ALL = [...[1, 2, 3, 4, 5, 6].map((n) => `event ${n}: naïve 漢字 ✓`), 'counted to 6'];

describe.each(['throughline', 'numbered', 'opaque'] as const)('the server without a fault, dialect %s', (dialect) => {
  it('[LIAR-HONEST] a resume in the middle goes on where the client stopped, on both kinds of stream', async () => {
    await using server = await startFaultyServer({ dialect });
    const client = await RawClient.connect(server.url);
    const call = await client.callTool(server.url, 'count', { to: 6 });
    await call.closed;
    expect(textsOf(call.items)).toEqual(ALL);
    const resumed = await client.resume(server.url, idsOf(call.items)[2] ?? '');
    await resumed.closed;
    expect(textsOf(resumed.items)).toEqual(ALL.slice(3));
    expect(idsOf(resumed.items)).toEqual(idsOf(call.items).slice(3));
    const standalone = await client.listen(server.url);
    await (
      await client.callTool(server.url, 'announce', { to: 2 })
    ).closed;
    await standalone.until('the second event', ({ data }) => data.includes('event 2'));
    const again = await client.resume(server.url, idsOf(standalone.items)[0] ?? '');
    await again.until('the second event', ({ data }) => data.includes('event 2'));
    expect(textsOf(again.items)).toEqual(ALL.slice(1, 2));
    expect(server.liedAtMs()).toBeNull();
  });

  it('[LIAR-HONEST] says what HTTP has words for', async () => {
    await using server = await startFaultyServer({ dialect });
    const client = await RawClient.connect(server.url);
    const status = async (answer: Promise<{ status: number }>): Promise<number> => (await answer).status;
    expect(await status(client.resume(server.url, 'unknown'))).toBe(400);
    expect(await status(RawClient.of('unknown').listen(server.url))).toBe(404);
    expect(await status(fetch(server.url, { method: 'PUT' }))).toBe(405);
    expect(await status(fetch(server.url))).toBe(400);
    expect(await status(fetch(server.url, { method: 'POST', body: '{' }))).toBe(400);
    expect(await status(client.end(server.url))).toBe(dialect === 'throughline' ? 204 : 200);
    expect(await status(client.listen(server.url))).toBe(404);
    expect(await status(client.callTool(server.url, 'echo'))).toBe(404);
  });

  it('[LIAR-HONEST] what was said before anybody listened is not lost; two sessions see nothing of each other', async () => {
    await using server = await startFaultyServer({ dialect });
    const one = await RawClient.connect(server.url);
    const other = await RawClient.connect(server.url);
    const quiet = await other.listen(server.url);
    await (
      await one.callTool(server.url, 'announce', { to: 1 })
    ).closed;
    const late = await one.listen(server.url);
    await late.until('the event', ({ data }) => data.includes('event 1'));
    expect(quiet.events()).toEqual([]);
  });

  it('[LIAR-LOG] keeps each request with its cursor, and each event that was sent', async () => {
    await using played = await playCall('gap-in-ids', dialect);
    await played.resume();
    const { requests, sent, runs } = played.server;
    expect(
      requests.map(({ method, rpcMethod, lastEventId, status, isFault }) => [
        method,
        rpcMethod,
        lastEventId,
        status,
        isFault,
      ]),
    ).toEqual([
      ['POST', 'initialize', undefined, 200, false],
      ['POST', 'notifications/initialized', undefined, 202, false],
      ['POST', 'tools/call', undefined, 200, false],
      ['GET', undefined, played.cursor, 200, true],
    ]);
    expect(requests.slice(1).map(({ sessionId }) => sessionId)).toEqual(Array(3).fill(played.client.sessionId));
    const said = sent.slice(1).map(({ data }) => textsOf([{ kind: 'event', data }])[0]);
    expect(said).toEqual([...ALL.slice(0, 3), ...ALL.slice(4)]);
    expect(runs).toEqual(['count']);
  });
});

describe('the dialects of an honest server', () => {
  const fetchStream = async (dialect: 'throughline' | 'numbered' | 'opaque') => {
    await using server = await startFaultyServer({ dialect });
    const client = await RawClient.connect(server.url);
    const call = await client.callTool(server.url, 'count', { to: 6 }, 7);
    await call.closed;
    return { call, client };
  };

  it('[LIAR-DIALECT] throughline: number and chain of each id are those of its stream, and the epoch is in the header', async () => {
    const { call, client } = await fetchStream('throughline');
    expect(checkStream(client.sessionId, call.items)).toHaveLength(7);
    expect(call.items[0]).toMatchObject({ data: '', retryMs: 20 });
    const epoch = String(call.headers['x-mcp-replay-epoch']);
    expect(epoch).toMatch(/^[a-z2-7]{10}$/);
    for (const id of idsOf(call.items)) expect(id).toMatch(new RegExp(`^${epoch}\\.0\\.\\d+\\.r\\d+~7\\.`));
    expect(call.headers['mcp-session-id']).toBe(client.sessionId);
  });

  it('[LIAR-DIALECT] throughline: a resume repeats the cursor, and marks the border to what is live', async () => {
    await using server = await startFaultyServer();
    const client = await RawClient.connect(server.url);
    const standalone = await client.listen(server.url);
    const cursor = (await standalone.until('an id', ({ id }) => id !== undefined)).id ?? '';
    const resumed = await client.resume(server.url, cursor);
    await resumed.until('the border', ({ kind, data }) => kind === 'comment' && data.startsWith('live '));
    expect(resumed.headers['x-mcp-replay-from']).toMatch(/^0\.\d+$/);
    expect(resumed.items.slice(0, 2)).toEqual([
      { kind: 'comment', data: 'replay' },
      { kind: 'event', id: cursor, retryMs: 20, data: '' },
    ]);
    // The former connection is closed: the newest has the stream.
    await standalone.closed;
  });

  it('[LIAR-DIALECT] throughline: a request that comes again gets the outcome of the first, and runs once', async () => {
    await using server = await startFaultyServer();
    const client = await RawClient.connect(server.url);
    const first = await client.callTool(server.url, 'count', { to: 6 }, 7);
    const second = await client.callTool(server.url, 'count', { to: 6 }, 7);
    await Promise.all([first.closed, second.closed]);
    expect(textsOf(second.items)).toEqual(ALL);
    expect(checkStream(client.sessionId, second.items)).toHaveLength(7);
    expect(server.runs).toEqual(['count']);
  });

  it('[LIAR-DIALECT] numbered: consecutive integers in each stream, unique in the session, and an epoch', async () => {
    const { call } = await fetchStream('numbered');
    const numbers = idsOf(call.items).map(Number);
    expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index));
    expect(call.headers['x-mcp-replay-epoch']).toMatch(/^[a-z2-7]{10}$/);
    expect(numbers[0]).toBeGreaterThan(100_000);
  });

  it('[LIAR-DIALECT] opaque: ids that tell nothing but their stream, and no epoch', async () => {
    const { call } = await fetchStream('opaque');
    for (const id of idsOf(call.items)) expect(id).toMatch(/^[0-9a-f-]{36}_\d{13}_[0-9a-f]{8}$/);
    expect(call.headers['x-mcp-replay-epoch']).toBeUndefined();
  });

  it('[LIAR-DIALECT] clients before 2025-11-25 get no id without data', async () => {
    await using server = await startFaultyServer();
    const client = await RawClient.connect(server.url, { version: '2025-06-18' });
    const call = await client.callTool(server.url, 'count', { to: 1 });
    await call.closed;
    expect(call.items.filter(({ kind, data }) => kind === 'event' && data === '')).toEqual([]);
  });
});

describe('the end of the server', () => {
  it('[LIAR-STOP] closes every connection and port, once and again', async () => {
    const server = await startFaultyServer({ fault: 'redirect-other-origin' });
    const client = await RawClient.connect(server.url);
    const standalone = await client.listen(server.url);
    await Promise.all([server.stop(), server.stop()]);
    await standalone.closed;
    await server.stop();
    await expect(fetch(server.url)).rejects.toThrow('fetch failed');
  });

  it('[LIAR-STOP] a client that goes leaves its stream, and comes back to it', async () => {
    await using server = await startFaultyServer({ keepAliveMs: 10 });
    const client = await RawClient.connect(server.url);
    const standalone = await client.listen(server.url);
    const cursor = (await standalone.until('an id', ({ id }) => id !== undefined)).id ?? '';
    standalone.cut();
    await standalone.closed;
    await (
      await client.callTool(server.url, 'announce', { to: 1 })
    ).closed;
    const resumed = await waitUntil('the event', async () => {
      const answer = await client.resume(server.url, cursor);
      await answer.until('the event', ({ data }) => data.includes('event 1'), 2000);
      return answer;
    });
    expect(textsOf(resumed.items)).toEqual(ALL.slice(0, 1));
  });
});
