/** Records that others put into the topics: docs/operations/poison-records.md. */
import { DEAD_LETTER } from '@throughline/log';
import type { Log, PartitionRef } from '@throughline/log';
import { decodeText, encodeText, META_KEY, parseSessionId } from '@throughline/protocol';
import type { LogRecord, RecordInput, Topic } from '@throughline/protocol';
import { RawClient, startCluster, waitUntil, within } from '@throughline/testkit/processes';
import type { Cluster } from '@throughline/testkit/processes';
import { afterAll, beforeAll, expect } from 'vitest';
import { runCli } from '../../services/cli/src/operate/testing/run-cli.ts';
import { it, makeLog } from './log-under-test.ts';
import { showLogsOnFailure } from './show-logs.ts';

const LIMIT_MS = 60_000;
const NOTE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"from outside"}}';
const REQUEST = '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"countdown","arguments":{"from":1}}}';

let cluster: Cluster;
let client: RawClient;
let log: Log;
const at = { partition: 0, key: '', epoch: '' };

beforeAll(async () => {
  cluster = await startCluster({
    log: makeLog,
    gateways: 1,
    workers: 1,
    args: ['--dead-after', '2500ms'],
    workerArgs: ['--heartbeat', '250ms', '--admin', '127.0.0.1:0'],
  });
  log = await cluster.log.open();
  client = await RawClient.connect(url());
  const { id } = parseSessionId(client.sessionId)!;
  Object.assign(at, id);
}, 120_000);
afterAll(async () => {
  await log.close();
  await cluster[Symbol.asyncDispose]();
}, 60_000);

const url = (): string => cluster.urls()[0] ?? '';

/** As a stock tool writes it. */
function record(key: string | null, value: string | null, headers: Readonly<Record<string, string>> = {}): RecordInput {
  return {
    key: key === null ? null : encodeText(key),
    value: value === null ? null : encodeText(value),
    headers: Object.entries(headers).map(([name, text]) => [name, encodeText(text)] as const),
  };
}

/** The places of the records that were appended, as dead letters name them. */
async function put(topic: Topic, partition: number, ...records: RecordInput[]): Promise<string[]> {
  const { offsets } = await log.append({ topic, partition }, records);
  return offsets.map((offset) => `${topic}/${partition}/${offset}`);
}

const headerOf = ({ headers }: LogRecord, name: string): string =>
  decodeText(headers.find(([each]) => each === name)?.[1] ?? new Uint8Array(0));

async function readAll(of: PartitionRef): Promise<LogRecord[]> {
  const { start, end } = await log.bounds(of);
  const all: LogRecord[] = [];
  for (let position = start; position < end;) {
    const { records, next } = await log.read(of, position, { maxBytes: 1 << 24, waitMs: 200 });
    all.push(...records);
    position = next;
  }
  return all;
}

/** Places and reasons of all dead letters. */
async function deadLetters(): Promise<Map<string, string>> {
  const records = await readAll(DEAD_LETTER);
  return new Map(records.map((each) => [headerOf(each, 'dead-letter-from'), headerOf(each, 'dead-letter-why')]));
}

async function expectDead(places: readonly string[], reasons: readonly string[]): Promise<void> {
  await waitUntil(
    'the dead letters',
    async () => {
      const dead = await deadLetters();
      return places.every((place) => dead.has(place));
    },
    LIMIT_MS,
  );
  const dead = await deadLetters();
  expect(places.map((place) => dead.get(place))).toEqual(reasons);
}

async function metric(of: string, name: string): Promise<number> {
  const text = await (await fetch(`${of}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  return Number(line?.split(' ')[1] ?? 0);
}

async function expectServed(): Promise<void> {
  const answer = await client.callTool(url(), 'countdown', { from: 2, intervalMs: 1 });
  await answer.until('the result', ({ data }) => data.includes('done 2'), LIMIT_MS);
}

it('[WRK-POISON] in inbound, what cannot be read is a dead letter with its place and why, and calls go on', async () => {
  showLogsOnFailure(cluster);
  const worker = cluster.workers[0]!.adminUrl;
  const message = { v: '1', type: 'message', server: 'default' };
  const places = await put(
    'inbound',
    at.partition,
    record(at.key, 'nonsense', message),
    record(at.key, REQUEST),
    record(at.key, REQUEST, { ...message, type: 'gossip' }),
    record(at.key, REQUEST, { ...message, v: '2' }),
    record(null, REQUEST, message),
    record(at.key, REQUEST, { ...message, batch: '3/2' }),
    record(at.key, NOTE, { ...message, type: 'producer.message' }),
  );
  await expectDead(places, [
    'the value is not JSON',
    'unknown type ""',
    'unknown type "gossip"',
    'format "2"; this version reads 1',
    'the key (session key) is missing',
    'header batch is not i/n',
    'producer.message: header idempotency-key is not 1 to 128 characters of visible ASCII',
  ]);
  expect(await metric(worker, 'throughline_worker_unreadable_total{topic="inbound"}')).toBe(places.length);
  await expectServed();
}, 120_000);

it('[WRK-POISON] in inbound, what names no session of its partition runs nothing: a request ends with an error, the rest is counted', async () => {
  showLogsOnFailure(cluster);
  const worker = cluster.workers[0]!.adminUrl;
  const message = { v: '1', type: 'message', server: 'default' };
  const elsewhere = (at.partition + 1) % log.description.partitions;
  const before = await metric(worker, 'throughline_worker_dropped_total{reason="no-session"}');
  for (const [partition, key] of [
    [at.partition, 'nobody'],
    [elsewhere, at.key],
  ] as const) {
    const [request = ''] = await put('inbound', partition, record(key, REQUEST, message), record(key, NOTE, message));
    const stream = `r${request.split('/')[2] ?? ''}`;
    const events = { topic: 'events', partition } as const;
    const said = await waitUntil(
      'the end of its stream',
      async () => {
        const records = await readAll(events);
        return records.find((each) => headerOf(each, 'stream') === stream && headerOf(each, 'end') === '1');
      },
      LIMIT_MS,
    );
    expect(JSON.parse(decodeText(said.value!))).toMatchObject({ id: 'x', error: { data: { code: 'SESSION_ENDED' } } });
  }
  await waitUntil(
    'both to be counted',
    async () => (await metric(worker, 'throughline_worker_dropped_total{reason="no-session"}')) === before + 2,
    LIMIT_MS,
  );
  await expectServed();
}, 120_000);

it('[WRK-POISON] [GW-POISON] in events, what cannot be told is a dead letter, streams go on, and a foreign owner is not heard', async () => {
  showLogsOnFailure(cluster);
  const { adminUrl } = cluster.gateways[0]!;
  const listening = await client.listen(url());
  await listening.until('an id', ({ id }) => id !== undefined, LIMIT_MS);
  const message = { v: '1', type: 'message', stream: 's' };
  const elsewhere = (at.partition + 1) % log.description.partitions;
  const fenced = await metric(adminUrl, 'throughline_tail_records_total{verdict="fenced"}');
  const places = await put(
    'events',
    at.partition,
    record(at.key, 'nonsense', message),
    record(at.key, NOTE, { ...message, type: 'gossip' }),
    record(at.key, NOTE, { ...message, v: '2' }),
    record(null, NOTE, message),
    record(at.key, NOTE, { ...message, stream: 'everywhere' }),
    record(null, '{}', { v: '1', type: 'owner.checkpoint' }),
    record('nobody', NOTE, message),
  );
  const [strayed = ''] = await put('events', elsewhere, record(at.key, NOTE, message));
  await put('events', at.partition, record(at.key, NOTE, { ...message, owner: '999999999' }));
  await put('events', at.partition, record(at.key, NOTE.replace('outside', 'the end'), message));
  await listening.until('the last word', ({ data }) => data.includes('from the end'), LIMIT_MS);
  const heard = listening.events().map(({ data }) => JSON.parse(data) as { error?: { code: number }; params?: object });
  expect(heard.map(({ error, params }) => error?.code ?? params)).toEqual([
    -32603,
    { level: 'info', data: 'from the end' },
  ]);
  listening.cut();
  await expectDead(
    [...places, strayed],
    [
      'no JSON-RPC message: the value is not JSON',
      'unknown type "gossip"',
      'format "2"; this version reads 1',
      'the key (session key) is missing',
      'message: header stream is neither s nor r<N>',
      'checkpoint: header owner is missing',
      'no session of this key in this partition',
      'no session of this key in this partition',
    ],
  );
  expect(await metric(adminUrl, 'throughline_tail_records_total{verdict="fenced"}')).toBe(fenced + 1);
  expect(await metric(adminUrl, 'throughline_tail_records_total{verdict="unreadable"}')).toBeGreaterThan(0);
  await expectServed();
}, 120_000);

it('[WRK-POISON-SESSION] in sessions and meta, what cannot be read ends no session and no epoch, also over a takeover', async () => {
  showLogsOnFailure(cluster);
  const worker = cluster.workers[0]!.adminUrl;
  await put('sessions', at.partition, record(at.key, '{"half":'), record('nobody', 'nonsense'));
  await put(
    'meta',
    0,
    record(META_KEY.epoch('zzzzzzzzzz'), 'nonsense'),
    record(META_KEY.mark(at.epoch, 'events', at.partition), '[]'),
    record(META_KEY.checkpoint(at.epoch, at.partition), '{"offset":"x"}'),
    record(META_KEY.worker('w-nobody'), 'null'),
    record('no such key', '{}'),
  );
  await waitUntil(
    'the record to be written anew',
    async () => (await metric(worker, 'throughline_worker_unreadable_total{topic="sessions"}')) === 1,
    LIMIT_MS,
  );
  await expectServed();
  await cluster.workers[0]!.kill();
  await cluster.startWorker(0);
  await expectServed();
  expect(client.sessionId.split('.')[0]).toBe(at.epoch);
  const again = await within('a new session', RawClient.connect(url()), LIMIT_MS);
  expect(parseSessionId(again.sessionId)?.id.epoch).toBe(at.epoch);
}, 180_000);

it('[CLI-DOCTOR] the doctor says that dead letters are held, and how to read them', async () => {
  const args = cluster.log.args('worker');
  const own = ['--log', '--prefix'].flatMap((name) =>
    args.includes(name) ? [name, args[args.indexOf(name) + 1] ?? ''] : [],
  );
  const { stdout } = await runCli(['doctor', ...own]);
  expect(stdout).toMatch(/dead-letters[^]*held/);
  const shown = await runCli(['tail', '--topic', 'dead-letter', '--from', 'start', '--json', ...own], {
    signal: AbortSignal.timeout(5000),
  });
  expect(shown.stdout).toContain('dead-letter-why');
}, 120_000);
