import { formatEventId, parseEventId } from '@throughline/protocol';
import type { EventId } from '@throughline/protocol';
import { describeAnswer, RawClient, startCluster, waitUntil, within } from '@throughline/testkit/processes';
import type { Cluster, HttpAnswer } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { SERVER_V2 } from './fixtures/paths.ts';
import { it, makeLog } from './log-under-test.ts';
import { CLIENT_LINES, connectOfficial } from './official-client.ts';
import { createRecordingFetch } from './recording-fetch.ts';
import { showLogsOnFailure } from './show-logs.ts';

const RETENTION_MS = 3000;

const resources = new AsyncDisposableStack();
let cluster: Cluster;
let forgetful: Cluster;

beforeAll(async () => {
  const workerArgs = ['--module', SERVER_V2];
  const common = { log: makeLog, workers: 1, workerArgs, gatewayArgs: ['--retry', '50ms'] };
  [cluster, forgetful] = await Promise.all([
    startCluster(common),
    startCluster({
      ...common,
      gateways: 1,
      retentionMs: RETENTION_MS,
      // What a gateway still has in memory it serves beyond retention.
      gatewayArgs: [...common.gatewayArgs, '--cache', '16KiB'],
    }),
  ]);
  resources.use(cluster);
  resources.use(forgetful);
}, 90_000);
afterAll(() => resources.disposeAsync(), 60_000);

type Forge = (cursor: EventId) => EventId;

const beyond: Forge = (cursor) => ({ ...cursor, offset: cursor.offset + 1_000_000 });
const otherEpoch: Forge = (cursor) => ({
  ...cursor,
  epoch: cursor.epoch.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a')),
});
const otherContent: Forge = (cursor) => ({ ...cursor, crc: (cursor.crc ^ 1) >>> 0 });

const FORGERIES = [
  { reason: 'beyond-end', forge: beyond },
  { reason: 'epoch-mismatch', forge: otherEpoch },
  { reason: 'diverged', forge: otherContent },
] as const;

function forged(id: string, forge: Forge): string {
  const cursor = parseEventId(id);
  if (cursor === null) throw new Error(`no event id: ${id}`);
  return formatEventId(forge(cursor));
}

/** Resolves when retention has taken the record that the cursor names. */
async function evicted(of: Cluster, id: string): Promise<void> {
  const cursor = parseEventId(id);
  if (cursor === null) throw new Error(`no event id: ${id}`);
  const log = await of.log.open();
  try {
    const ref = { topic: 'events', partition: cursor.partition } as const;
    await waitUntil('the eviction', async () => (await log.bounds(ref)).start > cursor.offset, 30_000);
  } finally {
    await log.close();
  }
}

/** What the SDKs' errors carry, under the names of either line. */
function factsOf(error: unknown): { readonly data: unknown; readonly http: unknown } {
  const { data, code, status } = error as { data?: unknown; code?: unknown; status?: unknown };
  return { data, http: status ?? code };
}

async function rejection(work: Promise<unknown>): Promise<{ readonly error: unknown; readonly atMs: number }> {
  try {
    await work;
  } catch (error) {
    return { error, atMs: performance.now() };
  }
  throw new Error('it was answered');
}

describe.each(CLIENT_LINES)('the official client %s', (line) => {
  it.each([...FORGERIES.map(({ reason }) => reason), 'gap'] as const)(
    '[E2E-REFUSED] learns of a refused resume (%s) at once: the pending call rejects, the next POST gets 404, a new session works',
    async (reason) => {
      const where = reason === 'gap' ? forgetful : cluster;
      showLogsOnFailure(where);
      const forge = FORGERIES.find((forgery) => forgery.reason === reason)?.forge;
      // Where the session's end is known at once is the gateway that refused; the others read of it.
      let target = where.urls()[0] ?? '';
      const recording = createRecordingFetch({
        pick: () => target,
        async rewriteCursor(id) {
          if (parseEventId(id)?.stream.kind !== 'request' || id.includes('.end.')) return id;
          if (forge !== undefined) return forged(id, forge);
          await evicted(where, id);
          return id;
        },
      });
      await using client = await connectOfficial(line, { fetch: recording.fetch });
      const steps: number[] = [];
      const call = client.callTool(
        'countdown',
        { from: 100_000, intervalMs: 20 },
        { onProgress: (step) => steps.push(step), timeoutMs: 60_000 },
      );
      const rejected = rejection(call);
      await waitUntil('the first steps', () => steps.length >= 3);
      target = where.urls().at(-1) ?? '';
      recording.cut();

      const { error, atMs } = await within('the pending call', rejected, 45_000);
      expect(factsOf(error).data).toMatchObject({
        type: 'ResumptionRejected',
        reason,
        action: 'reinitialize',
      });
      const answer = recording.answers.find(
        ({ method, lastEventId }) => method === 'GET' && parseEventId(lastEventId ?? '')?.stream.kind === 'request',
      );
      expect(answer?.status).toBe(200);
      expect(atMs - (answer?.atMs ?? 0)).toBeLessThan(1000);
      expect(answer?.items.findLast(({ id }) => id !== undefined)?.id).toMatch(/\.end\.[\w-]{22}$/);

      const next = await within('the next call', rejection(client.ping()), 1000);
      expect(factsOf(next.error).http).toBe(404);

      await using again = await connectOfficial(line, { fetch: recording.fetch });
      expect(await again.callTool('echo', { text: 'again' })).toBe('again');
    },
    90_000,
  );
});

describe('on the wire', () => {
  /** A session in the middle of a call, with an id of it. */
  async function interrupted(): Promise<{ client: RawClient; requestId: number; cursor: string; url: string }> {
    const [url = ''] = cluster.urls();
    const client = await RawClient.connect(url);
    const requestId = client.nextId();
    const answer = await client.callTool(url, 'countdown', { from: 2000, intervalMs: 10 }, requestId);
    const { id: cursor = '' } = await answer.until('a step', ({ data }) => data.includes('"progress":2,'));
    answer.cut();
    return { client, requestId, cursor, url };
  }

  async function ping(client: RawClient, url: string): Promise<HttpAnswer> {
    const answer = await client.request(url, 'ping');
    await within('the ping', answer.closed);
    return answer;
  }

  it.each(FORGERIES)(
    '[E2E-REFUSED-WIRE] $reason of a request stream is told in-band under a terminal id, whose resume gets 204, on every gateway',
    async ({ reason, forge }) => {
      showLogsOnFailure(cluster);
      const { client, requestId, cursor } = await interrupted();
      const [first = '', second = ''] = cluster.urls();
      const requested = forged(cursor, forge);
      const refused = await client.resume(second, requested);
      expect(await within('the refusal', refused.closed)).toBe('end');
      expect(refused.status).toBe(200);
      const events = refused.events();
      expect(events, describeAnswer(refused)).toHaveLength(1);
      expect(events[0]?.id).toMatch(/\.end\.[\w-]{22}$/);
      const message = JSON.parse(events[0]?.data ?? '') as { id: number; error: { data: object } };
      expect(message.id).toBe(requestId);
      expect(message.error.data).toMatchObject({
        type: 'ResumptionRejected',
        reason,
        action: 'reinitialize',
        requested,
        retry: 'reinitialize',
      });
      for (const url of [first, second]) {
        expect((await client.resume(url, events[0]?.id ?? '')).status).toBe(204);
        // The other gateway knows of the end as soon as it has read it.
        await waitUntil('the 404', async () => (await ping(client, url)).status === 404, 2000);
      }
      // What was pending is told the same way to whoever comes with the right cursor.
      const late = await client.resume(first, cursor);
      await within('the late resume', late.closed);
      expect(late.status).toBe(200);
      expect(late.events().at(-1)?.data, describeAnswer(late)).toContain('"session-ended"');
    },
  );

  it('[E2E-REFUSED-WIRE] a refused standalone stream gets 404 with the reason in its body', async () => {
    showLogsOnFailure(cluster);
    const [url = ''] = cluster.urls();
    const client = await RawClient.connect(url);
    const listening = await client.listen(url);
    const { id = '' } = await listening.until('an id', ({ id: some }) => some !== undefined);
    listening.cut();
    const refused = await client.resume(url, forged(id, beyond));
    expect(refused.status).toBe(404);
    expect(JSON.parse(await refused.text())).toMatchObject({
      error: { data: { type: 'ResumptionRejected', reason: 'beyond-end' } },
    });
    expect((await ping(client, url)).status).toBe(404);
  });

  it('[E2E-REFUSED-WIRE] a malformed or foreign cursor gets 400 and leaves session and call alone', async () => {
    showLogsOnFailure(cluster);
    const { client, cursor, url } = await interrupted();
    const other = await interrupted();
    const cases = [
      { cursor: 'nonsense', reason: 'cursor-malformed' },
      { cursor: `${cursor}x`, reason: 'cursor-malformed' },
      { cursor: '1'.repeat(5000), reason: 'cursor-malformed' },
      { cursor: other.cursor, reason: 'cursor-foreign' },
      {
        cursor: forged(cursor, (own) => ({ ...own, stream: { ...own.stream, at: own.stream.at + 1 } })),
        reason: 'cursor-foreign',
      },
    ];
    for (const { cursor: wrong, reason } of cases) {
      const refused = await client.resume(url, wrong);
      expect(refused.status).toBe(400);
      expect(JSON.parse(await refused.text())).toMatchObject({
        error: { data: { type: 'ResumptionRejected', reason, action: 'correct-cursor' } },
      });
    }
    expect((await ping(client, url)).status).toBe(200);
    const resumed = await client.resume(url, cursor);
    expect(resumed.status).toBe(200);
    await resumed.until('the next step', ({ data }) => data.includes('"progress":3,'));
    resumed.cut();
  });
});
