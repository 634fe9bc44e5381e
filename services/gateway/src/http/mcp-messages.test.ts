/** What MCP says of messages and streams over HTTP, for each revision with sessions: docs/reference/mcp-rules.md. */
import { closed } from '@throughline/testkit';
import { RawClient } from '@throughline/testkit/processes';
import type { HttpAnswer } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyOf, messageOf, progress, result } from '../testing/backend.ts';
import { call, NOTE } from '../testing/core-rig.ts';
import { createHttpRig, until } from '../testing/http-rig.ts';
import type { HttpRig } from '../testing/http-rig.ts';

let rig: HttpRig;
beforeAll(async () => {
  rig = await createHttpRig();
});
afterAll(() => rig.stop());

const ANSWER = { jsonrpc: '2.0', id: 'tl-1', result: {} };
const FAILURE = { jsonrpc: '2.0', id: 'tl-2', error: { code: -32601, message: 'no' } };
const QUESTION = { jsonrpc: '2.0', id: 'tl-3', method: 'roots/list' };
const CHANGE = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };

const said = (answer: HttpAnswer): unknown[] => answer.events().map(({ data }) => JSON.parse(data) as unknown);
const heard = (answer: HttpAnswer, count: number): Promise<void> =>
  until(() => answer.events().length >= count, 20_000);

interface Told {
  readonly session: string;
  readonly client: RawClient;
  /** Posts a request; its answer, and the stream that it will be told on. */
  ask(message: unknown): Promise<{ readonly answer: HttpAnswer; readonly stream: { kind: 'request'; at: number } }>;
}

async function open(version: string): Promise<Told> {
  const session = await rig.open(version);
  const client = RawClient.of(session, { version });
  return {
    session,
    client,
    async ask(message) {
      const answer = await client.post(rig.url, message);
      const { key } = keyOf(session);
      const records = (await rig.backend.inbound()).filter((record) => record.key === key);
      const first = records.findLast(({ body }) => body.type === 'message' && (body.batch?.index ?? 0) === 0);
      return { answer, stream: { kind: 'request', at: first?.offset ?? -1 } };
    },
  };
}

describe.each(['2025-03-26', '2025-06-18', '2025-11-25'])('messages of %s', (version) => {
  const isPrimed = version === '2025-11-25';

  it('[MCP-P1] one endpoint takes each request, notification and response in a POST of its own', async () => {
    const { session, client } = await open(version);
    const before = (await rig.backend.inbound()).length;
    for (const message of [call(1), NOTE, ANSWER, FAILURE]) {
      const answer = await client.post(rig.url, message);
      expect(answer.status).toBe('method' in message && 'id' in message ? 200 : 202);
      answer.cut();
    }
    const taken = (await rig.backend.inbound()).slice(before);
    expect(taken.map(messageOf)).toEqual([call(1), NOTE, ANSWER, FAILURE]);
    expect(new Set(taken.map(({ key }) => key))).toEqual(new Set([keyOf(session).key]));
  });

  it('[MCP-P2] a notification and a response are 202 without a body; refused, 4xx with an error that names no request', async () => {
    const { client } = await open(version);
    for (const message of [NOTE, ANSWER, FAILURE]) {
      const taken = await client.post(rig.url, message);
      expect([taken.status, await taken.text(), taken.headers['content-type']]).toEqual([202, '', undefined]);
      const nowhere = await RawClient.of('nonsense', { version }).post(rig.url, message);
      const strange = await client.post(rig.url, { ...message, strange: 1 });
      for (const refused of [nowhere, strange]) {
        expect(refused.status).toBe(refused === nowhere ? 404 : 400);
        expect(JSON.parse(await refused.text())).toMatchObject({ jsonrpc: '2.0', id: null, error: {} });
      }
    }
  });

  it('[MCP-P3] [MCP-P4] a request is answered by an event stream that tells what is its own, then the response, and ends', async () => {
    const { session, ask } = await open(version);
    const [one, other] = [await ask(call('one')), await ask(call('other'))];
    expect([one.answer.status, one.answer.headers['content-type']]).toEqual([200, 'text/event-stream']);
    await rig.backend.say(session, one.stream, progress(1));
    await rig.backend.say(session, other.stream, progress(2));
    await rig.backend.say(session, 's', CHANGE);
    await rig.backend.say(session, one.stream, QUESTION);
    await rig.backend.say(session, one.stream, result('one'), { end: true });
    expect(await one.answer.closed).toBe('end');
    expect(said(one.answer)).toEqual([progress(1), QUESTION, result('one')]);
    other.answer.cut();
  });

  it('[MCP-P4] its stream is not ended before the response where a client could not come back', async () => {
    const { session, ask } = await open(version);
    const { answer, stream } = await ask(call(1));
    await rig.backend.events(0, closed(keyOf(session).key, stream, rig.backend.claims[0] ?? null));
    await rig.backend.say(session, stream, result(1), { end: true });
    await answer.closed;
    expect(said(answer)).toEqual(isPrimed ? [] : [result(1)]);
  });

  it('[MCP-P5] a client that goes has cancelled nothing, and its answer is kept', async () => {
    const { session, client, ask } = await open(version);
    const { answer, stream } = await ask(call(1));
    await rig.backend.say(session, stream, progress(1));
    await heard(answer, 1);
    const cursor = answer.lastId() ?? '';
    const before = (await rig.backend.inbound()).length;
    answer.cut();
    await rig.backend.say(session, stream, result(1), { end: true });
    const resumed = await client.resume(rig.url, cursor);
    await resumed.closed;
    expect(said(resumed)).toEqual([result(1)]);
    expect((await rig.backend.inbound()).length).toBe(before);
  });

  it('[MCP-G1] GET is an event stream, or 405', async () => {
    const { client } = await open(version);
    const stream = await client.listen(rig.url);
    expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream']);
    stream.cut();
    const without = await fetch(rig.url, { headers: { accept: 'text/event-stream' } });
    expect(without.status).toBe(405);
  });

  it('[MCP-G2] a GET stream carries requests and notifications, and a response only where it resumes the stream of its request', async () => {
    const { session, client, ask } = await open(version);
    const listening = await client.listen(rig.url);
    const { answer, stream } = await ask(call(1));
    await rig.backend.say(session, stream, progress(1));
    await heard(answer, 1);
    const cursor = answer.lastId() ?? '';
    answer.cut();
    await rig.backend.say(session, stream, result(1), { end: true });
    const resumed = await client.resume(rig.url, cursor);
    await resumed.closed;
    await rig.backend.say(session, 's', QUESTION);
    await rig.backend.say(session, 's', CHANGE);
    await heard(listening, 2);
    expect(said(resumed)).toEqual([result(1)]);
    expect(said(listening)).toEqual([QUESTION, CHANGE]);
    listening.cut();
  });

  it('[MCP-M1] [MCP-R1] of several streams each message is on one, under an id that no other stream has', async () => {
    const { session, client, ask } = await open(version);
    const listening = await client.listen(rig.url);
    const calls = [await ask(call('a')), await ask(call('b')), await ask(call('c'))];
    for (const [place, { stream }] of calls.entries()) {
      await rig.backend.say(session, stream, progress(place));
      await rig.backend.say(session, 's', { ...CHANGE, params: { place } });
      await rig.backend.say(session, stream, result('abc'[place] ?? ''), { end: true });
    }
    for (const { answer } of calls) await answer.closed;
    await heard(listening, 3);
    const answers = [listening, ...calls.map(({ answer }) => answer)];
    const messages = answers.flatMap((answer) => answer.events().map(({ data }) => data));
    expect(messages).toHaveLength(9);
    expect(new Set(messages).size).toBe(9);
    // Ids without data name a place, not an event: they may repeat within their stream.
    const ids = answers.map((answer) => new Set(answer.items.flatMap(({ id }) => id ?? [])));
    expect(new Set(answers.flatMap((answer) => answer.events().map(({ id }) => id))).size).toBe(9);
    expect(new Set(ids.flatMap((each) => [...each])).size).toBe(ids.reduce((sum, { size }) => sum + size, 0));
    listening.cut();
  });

  it('[MCP-R2] a resume is told what came after its id on that stream, and nothing of another', async () => {
    const { session, client, ask } = await open(version);
    const [one, other] = [await ask(call('one')), await ask(call('other'))];
    await rig.backend.say(session, one.stream, progress(1));
    await rig.backend.say(session, other.stream, progress(10));
    await heard(one.answer, 1);
    const cursor = one.answer.lastId() ?? '';
    one.answer.cut();
    for (const step of [2, 3]) {
      await rig.backend.say(session, other.stream, progress(step * 10));
      await rig.backend.say(session, 's', CHANGE);
      await rig.backend.say(session, one.stream, progress(step));
    }
    const resumed = await client.resume(rig.url, cursor);
    await heard(resumed, 2);
    await rig.backend.say(session, one.stream, result('one'), { end: true });
    await resumed.closed;
    expect(said(resumed)).toEqual([progress(2), progress(3), result('one')]);
    other.answer.cut();
  });

  it('[MCP-R3] an id that cannot be resumed is 400 as long as the session lives, and never 404', async () => {
    const { client } = await open(version);
    const mine = await client.listen(rig.url);
    const theirs = await open(version);
    const { answer, stream } = await theirs.ask(call(1));
    await rig.backend.say(theirs.session, stream, progress(1));
    await heard(answer, 1);
    for (const cursor of ['nonsense', answer.lastId() ?? '']) {
      const refused = await client.resume(rig.url, cursor);
      expect([cursor, refused.status]).toEqual([cursor, 400]);
      expect(JSON.parse(await refused.text())).toMatchObject({ error: { data: { type: 'ResumptionRejected' } } });
    }
    expect((await client.post(rig.url, NOTE)).status).toBe(202);
    mine.cut();
    answer.cut();
  });
});
