/** The history of a real cluster breaks under real processes: everything of it is refused, nothing silently continued. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { formatEventId, parseEventId } from '@throughline/protocol';
import { startLocalKafka } from '@throughline/testkit/kafka';
import type { LocalKafka } from '@throughline/testkit/kafka';
import { describeAnswer, waitUntil, within } from '@throughline/testkit/processes';
import type { HttpAnswer, RawClient } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFailed } from 'vitest';
import { connectSoon, cutPartition, openBrokenWorld, resumeSoon } from './broken-world.ts';
import type { BrokenWorld } from './broken-world.ts';

const LONG_MS = 240_000;

interface Told {
  readonly error?: { readonly data: { readonly reason?: string; readonly code?: string } };
  readonly params?: { readonly progress: number };
  readonly result?: object;
}

const messagesOf = (answer: HttpAnswer): Told[] => answer.events().map(({ data }) => JSON.parse(data) as Told);
const progressOf = (answer: HttpAnswer): number[] => messagesOf(answer).flatMap(({ params }) => params?.progress ?? []);

interface Before {
  readonly client: RawClient;
  /** An id of a call that has ended, with messages behind it. */
  readonly oldId: string;
  /** An id of the standalone stream. */
  readonly standaloneId: string;
  readonly pending: HttpAnswer;
}

/** What a client has when the history breaks: an old cursor, a standalone stream, and a call that runs. */
async function beginOn(url: string): Promise<Before> {
  const client = await connectSoon(url);
  const standalone = await client.listen(url);
  const ended = await client.callTool(url, 'countdown', { from: 3, intervalMs: 10 });
  await within('the first call', ended.closed);
  const oldId = ended.events().find(({ data }) => data.includes('progress'))?.id ?? '';
  const pending = await client.callTool(url, 'countdown', { from: 100_000, intervalMs: 100 });
  await pending.until('progress', ({ data }) => data.includes('progress'));
  const { id: standaloneId = '' } = await standalone.until('an id', ({ id }) => id !== undefined, 60_000);
  return { client, oldId, standaloneId, pending };
}

/** The call that ran ends with an error that says why, and its messages are without a gap up to there. */
async function expectEnded({ pending }: Before): Promise<void> {
  await within('the call that runs to end', pending.closed, 90_000);
  const messages = messagesOf(pending);
  expect(messages.at(-1)?.error?.data, describeAnswer(pending)).toMatchObject({ reason: 'epoch-mismatch' });
  const progress = progressOf(pending);
  expect(progress).toEqual(progress.map((_, index) => index + 1));
}

async function expectRefused({ client, oldId, standaloneId }: Before, url: string): Promise<void> {
  const old = await resumeSoon(client, url, oldId);
  expect(old.status).toBe(200);
  await within('the refusal', old.closed);
  expect(messagesOf(old), describeAnswer(old)).toMatchObject([{ error: { data: { reason: 'epoch-mismatch' } } }]);
  const standalone = await resumeSoon(client, url, standaloneId);
  expect(standalone.status).toBe(404);
  expect(await standalone.text()).toContain('epoch-mismatch');
}

async function expectAlive(url: string): Promise<void> {
  const client = await connectSoon(url);
  const call = await client.callTool(url, 'countdown', { from: 3, intervalMs: 10 });
  await within('a new call', call.closed, 30_000);
  expect(progressOf(call), describeAnswer(call)).toEqual([1, 2, 3]);
  expect(messagesOf(call).at(-1)?.result).toBeDefined();
}

const isInLane = inject('kafka') !== undefined;

describe.skipIf(!isInLane)('a broken history on Kafka', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'throughline-broken-'));
  let kafka: LocalKafka;
  beforeAll(async () => {
    kafka = await startLocalKafka({ dataDir: folder, overrides: { 'group.min.session.timeout.ms': '500' } });
  }, 120_000);
  afterAll(async () => {
    await kafka.stop();
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  const open = async (): Promise<BrokenWorld> => {
    const world = await openBrokenWorld(kafka);
    onTestFailed(() => {
      const telling = world
        .logs()
        .split('\n')
        .filter((line) => !line.includes('"event":"kafka: '));
      process.stderr.write(`${telling.join('\n').slice(-20_000)}\n`);
    });
    return world;
  };
  const expectBroken = async (world: BrokenWorld, breakIt: () => Promise<void>): Promise<void> => {
    const urls = world.urls();
    const before = await Promise.all(urls.map(beginOn));
    await world.marked();
    await breakIt();
    await Promise.all(before.map(expectEnded));
    for (const url of urls) for (const each of before) await expectRefused(each, url);
    for (const url of urls) await expectAlive(url);
    const epochs = await world.epochs();
    expect(epochs.map(({ reason }) => reason)).toHaveLength(2);
    expect(epochs[1]?.previous).toBe(epochs[0]?.token);
  };

  it.each([[['events']], [['inbound']], [['events', 'inbound']]] as const)(
    '[KAFKA-BREAK] %j deleted and made anew: what ran ends with a reason, old cursors are refused, one new epoch',
    { timeout: LONG_MS },
    async (topics) => {
      await using world = await open();
      await expectBroken(world, () => world.recreate(topics));
    },
  );

  it('[KAFKA-BREAK] a partition that comes back with a part of its log', { timeout: LONG_MS }, async () => {
    await using world = await open();
    await expectBroken(world, async () => {
      const ends = await world.ends('events');
      await kafka.kill();
      ends.forEach((end, partition) => {
        cutPartition(folder, `${world.prefix}.events-${partition}`, Math.floor(end / 2));
      });
      await kafka.restart();
    });
  });

  it(
    '[KAFKA-BREAK] a break while no process runs is proved before anything is served',
    { timeout: LONG_MS },
    async () => {
      await using world = await open();
      const before = await Promise.all(world.urls().map(beginOn));
      await world.marked();
      await world.killAll();
      await world.recreate(['events']);
      await world.startAll();
      for (const url of world.urls()) for (const each of before) await expectRefused(each, url);
      for (const url of world.urls()) await expectAlive(url);
      expect(await world.epochs()).toHaveLength(2);
    },
  );

  it('[KAFKA-BREAK] inbound alone, made anew while no process runs', { timeout: LONG_MS }, async () => {
    await using world = await open();
    const before = await Promise.all(world.urls().map(beginOn));
    await world.marked();
    await world.killAll();
    await world.recreate(['inbound']);
    await world.startAll();
    for (const url of world.urls()) for (const each of before) await expectRefused(each, url);
    for (const url of world.urls()) await expectAlive(url);
    expect(await world.epochs()).toHaveLength(2);
  });

  it(
    '[KAFKA-NO-BREAK] forged cursors, restarts of the broker, and a kill of all processes rotate nothing',
    { timeout: LONG_MS },
    async () => {
      await using world = await open();
      const [url = '', other = ''] = world.urls();
      const { client, oldId, pending } = await beginOn(url);
      const bystander = await connectSoon(other);
      const cursor = parseEventId(oldId)!;
      for (const offset of [0, cursor.offset + 1, Number.MAX_SAFE_INTEGER]) {
        // Each forged cursor ends the session that sends it, and no other.
        const liar = await connectSoon(other);
        const call = await liar.callTool(other, 'countdown', { from: 3, intervalMs: 10 });
        await within('the call of the liar', call.closed);
        const own = parseEventId(call.lastId() ?? '')!;
        const answer = await liar.resume(other, formatEventId({ ...own, offset }));
        await within('the refusal', answer.closed);
      }
      await kafka.restart();
      await kafka.kill();
      await kafka.restart();
      const again = await bystander.callTool(other, 'countdown', { from: 3, intervalMs: 10 });
      await within('a call of a bystander', again.closed, 60_000);
      expect(messagesOf(again).at(-1)?.result, describeAnswer(again)).toBeDefined();
      const { id: lastId = '' } = pending.events().at(-1) ?? {};
      await world.killAll();
      await world.startAll();
      const [back = ''] = world.urls();
      const resumed = await resumeSoon(client, back, lastId);
      // The call itself has lost its owner; its stream goes on to say so, unless the outage before took so long that it had.
      await within('the end of the call', resumed.closed, 60_000);
      const told = [...messagesOf(pending), ...messagesOf(resumed)];
      expect(told.at(-1)?.error?.data.code, describeAnswer(resumed)).toBe('OWNER_LOST');
      expect(resumed.status).toBe(messagesOf(pending).at(-1)?.error === undefined ? 200 : 204);
      const old = await resumeSoon(client, back, oldId);
      expect(old.status).toBe(200);
      await within('the old stream', old.closed, 30_000);
      expect(progressOf(old)).toEqual([2, 3]);
      expect(await world.epochs()).toHaveLength(1);
    },
  );

  it(
    '[WRK-LAG] [KAFKA-COMMIT] the lag that Kafka shows is work to do: 1 or more while a request is open, else 0',
    { timeout: LONG_MS },
    async () => {
      await using world = await open();
      const [url = ''] = world.urls();
      const client = await connectSoon(url);
      await waitUntil('no lag', async () => (await world.lag()) === 0, 60_000);
      const call = await client.callTool(url, 'countdown', { from: 100_000, intervalMs: 200 });
      await waitUntil('a lag', async () => (await world.lag()) > 0, 60_000);
      await within(
        'many requests that are answered',
        Promise.all(Array.from({ length: 5 }, () => client.callTool(url, 'countdown', { from: 1, intervalMs: 1 }))),
        60_000,
      );
      await waitUntil('a lag from the lowest open request on', async () => (await world.lag()) >= 6, 60_000);
      call.cut();
      await client.end(url);
      await waitUntil('no lag any more', async () => (await world.lag()) === 0, 60_000);
    },
  );
});
