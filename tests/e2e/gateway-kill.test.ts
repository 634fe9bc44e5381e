import { setTimeout as pause } from 'node:timers/promises';
import { formatStreamLabel, parseEventId } from '@throughline/protocol';
import { checkStream, RawClient, startCluster, waitUntil, within } from '@throughline/testkit/processes';
import type { Cluster, HttpAnswer, SseItem, StreamMessage } from '@throughline/testkit/processes';
import { afterAll, beforeAll, expect } from 'vitest';
import { SERVER_V2 } from './fixtures/paths.ts';
import { it, makeLog } from './log-under-test.ts';
import { CLIENT_LINES, connectOfficial } from './official-client.ts';
import type { OfficialClient } from './official-client.ts';
import { createRecordingFetch } from './recording-fetch.ts';
import type { RecordingFetch } from './recording-fetch.ts';
import { drawSeed, rounds } from './seed.ts';
import { showLogsOnFailure } from './show-logs.ts';

const ROUNDS = rounds({ change: 10, kafka: 3, deep: 200 });
const STEPS = 40;
const INTERVAL_MS = 8;
const EXPECTED = Array.from({ length: STEPS }, (_, step) => step + 1);

let cluster: Cluster;

beforeAll(async () => {
  cluster = await startCluster({
    log: makeLog,
    workers: 1,
    gatewayArgs: ['--retry', '60ms'],
    workerArgs: ['--module', SERVER_V2],
  });
}, 90_000);
afterAll(() => cluster[Symbol.asyncDispose](), 60_000);

interface Official {
  readonly client: OfficialClient;
  readonly recording: RecordingFetch;
}

/** A call whose client comes back on `other` whenever its connection breaks: by its cursor, or if it has none by the same POST. */
async function callOverKill(client: RawClient, first: string, other: string): Promise<readonly SseItem[]> {
  const id = client.nextId();
  const post = (url: string): Promise<HttpAnswer> =>
    client.callTool(url, 'countdown', { from: STEPS, intervalMs: INTERVAL_MS }, id);
  let answer: HttpAnswer;
  try {
    answer = await post(first);
  } catch {
    // Cut before an answer: nobody knows whether it was appended, so the same request is sent again.
    answer = await post(other);
  }
  const items: SseItem[] = [];
  for (;;) {
    const closing = await within('the stream to close', answer.closed, 20_000);
    items.push(...answer.items);
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    if (items.some(({ data }) => data.includes('"result"'))) return items;
    const cursor = items.findLast(({ id: eventId }) => eventId !== undefined)?.id;
    if (closing === 'cut' && cursor === undefined) answer = await post(other);
    else if (cursor !== undefined) answer = await client.resume(other, cursor);
    else throw new Error('the stream ended without a result and without a cursor');
  }
}

/** What somebody sees who asks for the whole stream, from its first id. */
async function observe(url: string, sessionId: string, from: string): Promise<readonly StreamMessage[]> {
  const answer = await RawClient.of(sessionId).resume(url, from);
  await within('the observed stream', answer.closed, 20_000);
  if (answer.status !== 200) throw new Error(`observer: ${answer.status} ${await answer.text()}`);
  return checkStream(sessionId, answer.items);
}

/** Progress in order and then the result, as one line. */
function summary(messages: readonly StreamMessage[]): readonly unknown[] {
  return messages.map(({ data }) => {
    const message = JSON.parse(data) as { params?: { progress: number }; result?: { content: { text: string }[] } };
    return message.params?.progress ?? message.result?.content[0]?.text ?? data;
  });
}

function itemsOfNewestRequest(recording: RecordingFetch, from: number): readonly SseItem[] {
  const items = recording.items().slice(from);
  const isRequestStream = ({ id }: SseItem): boolean => id !== undefined && parseEventId(id)?.stream.kind === 'request';
  const label = labelOf(items.find(isRequestStream)?.id);
  return items.filter(({ id }) => id !== undefined && labelOf(id) === label);
}

function labelOf(id: string | undefined): string | undefined {
  const cursor = id === undefined ? null : parseEventId(id);
  return cursor === null ? undefined : formatStreamLabel(cursor.stream);
}

const { seed, random } = drawSeed('gateway-kill');

it(
  `[E2E-GATEWAY-KILL] a call goes on over the other gateway at any moment of a kill: each message once, in order, with the ids and chain that an observer sees (${ROUNDS} kills, seed ${seed})`,
  async () => {
    showLogsOnFailure(cluster);
    let target = cluster.urls()[0] ?? '';
    const raws = await Promise.all([0, 1, 2].map(() => RawClient.connect(target)));
    const connectBoth = (): Promise<Official[]> =>
      Promise.all(
        CLIENT_LINES.map(async (line): Promise<Official> => {
          const recording = createRecordingFetch({ pick: () => target });
          return { recording, client: await connectOfficial(line, { fetch: recording.fetch }) };
        }),
      );
    const officials = await connectBoth();
    // Sessions without a running call: what their server says goes on the standalone stream.
    const listeners = await connectBoth();
    // A client of the SDK that got no id yet cannot come back: it listens from the first one on.
    await waitUntil('the standalone streams', () =>
      listeners.every(({ recording }) =>
        recording.answers.some(({ method, items }) => method === 'GET' && items.some(({ id }) => id !== undefined)),
      ),
    );
    const takenMs: number[] = [];
    const told: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const place = round % 2;
      const [victim, survivor] = [cluster.gateways[place]!, cluster.gateways[1 - place]!];
      target = victim.url;
      const seen = officials.map((): number[] => []);
      const before = officials.map(({ recording }) => recording.items().length);
      const officialCalls = officials.map(({ client }, index) =>
        client.callTool(
          'countdown',
          { from: STEPS, intervalMs: INTERVAL_MS },
          { onProgress: (step) => seen[index]?.push(step) },
        ),
      );
      for (const call of officialCalls) call.catch(() => undefined);
      await waitUntil('the first steps', () => seen.every((steps) => steps.length > 0));
      // Often in the first milliseconds, before anybody knows whether the request was taken.
      const moment = random.unit() * (random.unit() < 0.4 ? 12 : STEPS * INTERVAL_MS * 1.2);
      const text = `round ${round}`;
      told.push(text);
      const later = listeners.map(({ client }) => client.callTool('notify_later', { text, ms: Math.round(moment) }));
      await Promise.all(later);
      const rawCalls = raws.map((client) => callOverKill(client, victim.url, survivor.url));
      await pause(moment);
      const killedAt = performance.now();
      target = survivor.url;
      await victim.kill();

      const context = `round ${round}, killed after ${moment.toFixed(1)} ms`;
      const outcomes = await Promise.all(rawCalls);
      const texts = await Promise.all(officialCalls);
      takenMs.push(performance.now() - killedAt);
      const restarted = await cluster.startGateway(place);
      expect(texts, context).toEqual(['done 40', 'done 40']);
      for (const steps of seen) expect(steps, context).toEqual(EXPECTED);
      const streams = [
        ...outcomes.map((items, index) => ({ sessionId: raws[index]!.sessionId, items })),
        ...officials.map(({ client, recording }, index) => ({
          sessionId: client.sessionId() ?? '',
          items: itemsOfNewestRequest(recording, before[index] ?? 0),
        })),
      ];
      for (const { sessionId, items } of streams) {
        const messages = checkStream(sessionId, items);
        expect(summary(messages), context).toEqual([...EXPECTED, 'done 40']);
        const from = items.find(({ id }) => id !== undefined)?.id ?? '';
        for (const observer of [survivor.url, restarted.url])
          expect(await observe(observer, sessionId, from), context).toEqual(messages);
      }
    }
    for (const { client } of listeners) {
      await waitUntil('what was told on the standalone stream', () => client.logged.length >= told.length);
      expect(client.logged).toEqual(told);
    }
    for (const { client } of [...officials, ...listeners]) await client[Symbol.asyncDispose]();
    const sorted = takenMs.sort((a, b) => a - b);
    process.stdout.write(
      `gateway-kill: from the kill to the end of all calls p50 ${sorted[sorted.length >> 1]?.toFixed(0) ?? ''} ms, most ${sorted.at(-1)?.toFixed(0) ?? ''} ms\n`,
    );
  },
  60_000 + ROUNDS * 20_000,
);
