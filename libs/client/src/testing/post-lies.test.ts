import { RawClient } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { playCall, textsOf } from './wire-rig.ts';

describe.each(['throughline', 'numbered', 'opaque'] as const)('the POST of a call, dialect %s', (dialect) => {
  it.each([
    ['post-404', 404, undefined],
    ['post-503', 503, '1'],
    ['post-401', 401, undefined],
  ] as const)('[LIAR-WIRE] %s: refused, and nothing was run', async (fault, status, retryAfter) => {
    await using played = await playCall(fault, dialect);
    expect([played.call.status, played.call.headers['retry-after']]).toEqual([status, retryAfter]);
    expect(played.server.runs).toEqual([]);
  });

  it('[LIAR-WIRE] post-503 comes once', async () => {
    await using played = await playCall('post-503', dialect);
    const again = await played.client.callTool(played.server.url, 'count', { to: 1 });
    await again.closed;
    expect(textsOf(again.items)).toEqual(['event 1: naïve 漢字 ✓', 'counted to 1']);
  });

  it('[LIAR-WIRE] post-404: the session is gone, and a new one is served', async () => {
    await using played = await playCall('post-404', dialect);
    expect((await played.client.callTool(played.server.url, 'echo')).status).toBe(404);
    expect((await RawClient.connect(played.server.url)).sessionId).not.toBe(played.client.sessionId);
  });

  it('[LIAR-WIRE] post-401: nothing is served any more', async () => {
    await using played = await playCall('post-401', dialect);
    expect((await played.client.callTool(played.server.url, 'echo')).status).toBe(401);
  });

  it('[LIAR-WIRE] post-html-page: 200 and a page, and the call was run', async () => {
    await using played = await playCall('post-html-page', dialect);
    expect([played.call.status, played.call.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(played.server.runs).toEqual(['count']);
  });

  it('[LIAR-WIRE] post-202: no body, and the call was run', async () => {
    await using played = await playCall('post-202', dialect);
    expect([played.call.status, await played.call.text(), played.call.items]).toEqual([202, '', []]);
    expect(played.server.runs).toEqual(['count']);
  });

  it('[LIAR-WIRE] post-empty-200: a stream without a byte, and the call was run', async () => {
    await using played = await playCall('post-empty-200', dialect);
    const { status, headers, items } = played.call;
    expect([status, headers['content-type'], items]).toEqual([200, 'text/event-stream', []]);
    expect(played.server.runs).toEqual(['count']);
  });
});
