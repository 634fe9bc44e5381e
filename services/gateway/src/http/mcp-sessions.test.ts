/** What MCP says of sessions, revisions and status codes over HTTP: docs/reference/mcp-rules.md. */
import { RawClient } from '@throughline/testkit/processes';
import type { HttpAnswer } from '@throughline/testkit/processes';
import { closed, sessionEnded } from '@throughline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyOf, progress, result } from '../testing/backend.ts';
import { call, initialize, NOTE } from '../testing/core-rig.ts';
import { createHttpRig, until } from '../testing/http-rig.ts';
import type { HttpRig } from '../testing/http-rig.ts';
import { cursorOf } from '../testing/sse-reading.ts';

let rig: HttpRig;
beforeAll(async () => {
  rig = await createHttpRig();
});
afterAll(() => rig.stop());

const REVISIONS = ['2025-03-26', '2025-06-18', '2025-11-25'];
const newest = async (): Promise<number> => (await rig.backend.inbound()).at(-1)?.offset ?? -1;

describe.each(REVISIONS)('sessions of %s', (version) => {
  const open = async (): Promise<RawClient> => RawClient.of(await rig.open(version), { version });
  const statuses = async (client: RawClient): Promise<number[]> => {
    const answers = [await client.post(rig.url, NOTE), await client.listen(rig.url), await client.end(rig.url)];
    for (const answer of answers) answer.cut();
    return answers.map(({ status }) => status);
  };

  it('[MCP-S1] the id is in the head of the answer to initialize: visible ASCII, and another one each time', async () => {
    const ids = new Set<string>();
    for (let count = 0; count < 20; count++) {
      const response = await rig.post(initialize(version));
      const id = response.headers.get('mcp-session-id') ?? '';
      expect(response.status).toBe(200);
      expect(id).toMatch(/^[\x21-\x7e]+$/);
      // 16 random bytes: what comes before them can be guessed.
      ids.add(keyOf(id).key);
      await response.body?.cancel();
    }
    expect(ids.size).toBe(20);
    for (const key of ids) expect(Buffer.from(key, 'base64url')).toHaveLength(16);
  });

  it('[MCP-S3] without the header it is 400, with an id that never was or that has ended 404', async () => {
    const post = async (headers: Record<string, string>): Promise<number> =>
      (await rig.post(NOTE, { 'mcp-protocol-version': version, ...headers })).status;
    expect(await post({})).toBe(400);
    expect((await fetch(rig.url, { method: 'DELETE' })).status).toBe(400);
    const resume = { accept: 'text/event-stream', 'last-event-id': 'x' };
    expect((await fetch(rig.url, { headers: resume })).status).toBe(400);
    expect(await statuses(RawClient.of('never-issued', { version }))).toEqual([404, 404, 404]);
  });

  it('[MCP-S5] DELETE ends the session: 204, and 404 for everything after it', async () => {
    const client = await open();
    const ended = await client.end(rig.url);
    expect([ended.status, await ended.text()]).toEqual([204, '']);
    expect(await statuses(client)).toEqual([404, 404, 404]);
  });

  it('[MCP-S6] a session that the server ends is 404 from then on', async () => {
    const client = await open();
    await rig.backend.endSession(client.sessionId);
    await until(async () => (await client.post(rig.url, NOTE)).status === 404);
    expect(await statuses(client)).toEqual([404, 404, 404]);
  });

  it('[MCP-V2] without MCP-Protocol-Version the revision is the negotiated one, and 2025-03-26 where that is not known', async () => {
    const client = await open();
    await rig.post(NOTE, { 'mcp-session-id': client.sessionId });
    expect((await rig.backend.inbound()).at(-1)?.body).toMatchObject({ version });
    // Made, but not recorded by its worker so far.
    const response = await rig.post(initialize(version));
    await rig.post(NOTE, { 'mcp-session-id': response.headers.get('mcp-session-id') ?? '' });
    expect((await rig.backend.inbound()).at(-1)?.body).toMatchObject({ version: '2025-03-26' });
    await response.body?.cancel();
  });

  it('[MCP-V3] a revision that is none is 400 on every method', async () => {
    const { sessionId } = await open();
    for (const wrong of ['', 'latest', '1999-01-01', '2026-07-28'])
      expect(await statuses(RawClient.of(sessionId, { version: wrong }))).toEqual([400, 400, 400]);
    expect(await statuses(RawClient.of(sessionId, { version }))).toEqual([202, 200, 204]);
  });
});

describe('batches', () => {
  it('[MCP-B1] of 2025-03-26 are taken: requests and notifications on one stream, or responses alone', async () => {
    const session = await rig.open('2025-03-26');
    const client = RawClient.of(session, { version: '2025-03-26' });
    const answers = [1, 2].map((id) => ({ jsonrpc: '2.0', id: `tl-${id}`, result: {} }));
    const taken = await client.post(rig.url, answers);
    expect([taken.status, await taken.text()]).toEqual([202, '']);
    const answer = await client.post(rig.url, [call('a'), NOTE, call('b')]);
    const at = (await newest()) - 2;
    await rig.backend.say(session, { kind: 'request', at }, result('b'), { answers: at + 2 });
    await rig.backend.say(session, { kind: 'request', at }, result('a'), { answers: at, end: true });
    expect(await answer.closed).toBe('end');
    expect(answer.events().map(({ data }) => JSON.parse(data) as unknown)).toEqual([result('b'), result('a')]);
  });

  it('[MCP-B1] initialize is never inside', async () => {
    const response = await rig.post([initialize('2025-03-26'), NOTE]);
    expect([response.status, response.headers.get('mcp-session-id')]).toEqual([400, null]);
  });

  it('[MCP-B1] [GW-BATCH] a huge one is refused as a whole, and soon', async () => {
    const client = RawClient.of(await rig.open('2025-03-26'), { version: '2025-03-26' });
    const before = await newest();
    for (const size of [101, 10_000]) {
      const answer = await client.post(rig.url, Array<object>(size).fill(NOTE));
      expect([size, answer.status]).toEqual([size, 400]);
    }
    expect(await newest()).toBe(before);
  });

  it.each(['2025-06-18', '2025-11-25'])('[MCP-B2] a session of %s has none: 400', async (version) => {
    const client = RawClient.of(await rig.open(version), { version });
    const before = await newest();
    for (const body of [[call(1)], [NOTE], [NOTE, call(1)], []]) {
      const answer = await client.post(rig.url, body);
      expect(answer.status).toBe(400);
      expect(JSON.parse(await answer.text())).toMatchObject({ error: { code: -32600 } });
    }
    // Whatever the header says: the revision is a matter of the session.
    expect((await RawClient.of(client.sessionId, { version: '2025-03-26' }).post(rig.url, [NOTE])).status).toBe(400);
    expect(await newest()).toBe(before);
  });
});

describe('streams of 2025-11-25', () => {
  let client: RawClient;
  beforeAll(async () => {
    client = RawClient.of(await rig.open());
  });
  const primed = (answer: HttpAnswer): Promise<unknown> => until(() => answer.lastId() !== undefined, 20_000);

  it('[MCP-E1] begin with an id and empty data at once, that of a POST and that of a GET, and a resumed one', async () => {
    const posted = await client.post(rig.url, call(1));
    const listening = await client.listen(rig.url);
    for (const answer of [posted, listening]) {
      await primed(answer);
      expect(answer.items.find(({ kind }) => kind === 'event')).toMatchObject({ id: answer.lastId(), data: '' });
    }
    const cursor = posted.lastId() ?? '';
    posted.cut();
    const resumed = await client.resume(rig.url, cursor);
    await primed(resumed);
    expect(resumed.items.find(({ kind }) => kind === 'event')).toMatchObject({ id: cursor, data: '' });
    resumed.cut();
    listening.cut();
  });

  it('[MCP-E10] only there: before 2025-11-25 no event is without data', async () => {
    for (const version of ['2025-03-26', '2025-06-18']) {
      const old = RawClient.of(await rig.open(version), { version });
      const answer = await old.post(rig.url, call(1));
      const at = await newest();
      await rig.backend.say(old.sessionId, { kind: 'request', at }, result(1), { end: true });
      await answer.closed;
      expect(answer.items.filter(({ kind, data }) => kind === 'event' && data === '')).toEqual([]);
      expect(answer.events()).toHaveLength(1);
    }
  });

  it('[MCP-E2] [MCP-E3] [MCP-E4] may be closed by the server to be polled, with a time to wait, and go on by GET', async () => {
    const posted = await client.post(rig.url, call(2));
    const stream = { kind: 'request', at: await newest() } as const;
    const { key } = keyOf(client.sessionId);
    const listening = await client.listen(rig.url);
    await primed(listening);
    const [claim = null] = rig.backend.claims;
    await rig.backend.events(0, closed(key, stream, claim), closed(key, 's', claim));
    for (const answer of [posted, listening]) {
      expect(await answer.closed).toBe('end');
      const last = answer.items.at(-1);
      expect([last?.id, last?.retryMs]).toEqual([undefined, expect.any(Number)]);
    }
    await rig.backend.say(client.sessionId, stream, result(2), { end: true });
    await rig.backend.say(client.sessionId, 's', progress(1));
    const [answer, more] = [
      await client.resume(rig.url, posted.lastId() ?? ''),
      await client.resume(rig.url, listening.lastId() ?? ''),
    ];
    await until(() => answer.events().length > 0 && more.events().length > 0, 20_000);
    expect(answer.events().map(({ data }) => JSON.parse(data) as unknown)).toEqual([result(2)]);
    expect(more.events().map(({ data }) => JSON.parse(data) as unknown)).toEqual([progress(1)]);
    more.cut();
  });

  it('[MCP-E5] every id says which stream it is of, also to a gateway that has never seen it', async () => {
    const [first, second] = [await client.post(rig.url, call(3)), await client.post(rig.url, call(4))];
    for (const answer of [first, second]) await primed(answer);
    const at = await newest();
    const [one, two] = [cursorOf(first.lastId() ?? ''), cursorOf(second.lastId() ?? '')];
    expect([one.stream, two.stream]).toEqual([
      { kind: 'request', at: at - 1 },
      { kind: 'request', at },
    ]);
    first.cut();
    second.cut();
  });

  it('[MCP-E6] end when their session ends, with an error for the call that waits', async () => {
    const own = RawClient.of(await rig.open());
    const [posted, listening] = [await own.post(rig.url, call(5)), await own.listen(rig.url)];
    expect((await own.end(rig.url)).status).toBe(204);
    const { key } = keyOf(own.sessionId);
    await rig.backend.events(0, sessionEnded(key, rig.backend.claims[0] ?? null));
    expect(await Promise.all([posted.closed, listening.closed])).toEqual(['end', 'end']);
    expect(JSON.parse(posted.events()[0]?.data ?? '')).toMatchObject({
      id: 5,
      error: { data: { action: 'reinitialize' } },
    });
  });
});
