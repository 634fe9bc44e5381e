import { setTimeout as pause } from 'node:timers/promises';
import {
  checkStream,
  describeAnswer,
  RawClient,
  startBalancer,
  startCluster,
  waitUntil,
  within,
} from '@throughline/testkit/processes';
import type { Balancer, Cluster, HttpAnswer, SseItem } from '@throughline/testkit/processes';
import { afterAll, beforeAll, expect } from 'vitest';
import { SERVER_V2 } from './fixtures/paths.ts';
import { it, makeLog } from './log-under-test.ts';
import { CLIENT_LINES, connectOfficial } from './official-client.ts';
import type { OfficialClient } from './official-client.ts';
import { showLogsOnFailure } from './show-logs.ts';

const RAW_CLIENTS = 40;
const OFFICIAL_CLIENTS_A_LINE = 5;
const STEPS = 8;
const INTERVAL_MS = 100;
const EXPECTED = Array.from({ length: STEPS }, (_, step) => step + 1);

let cluster: Cluster;
let balancer: Balancer;

beforeAll(async () => {
  cluster = await startCluster({ log: makeLog, workerArgs: ['--module', SERVER_V2, '--on-owner-loss', 'restore'] });
  balancer = await startBalancer(() => cluster.gateways);
}, 90_000);
afterAll(async () => {
  await balancer[Symbol.asyncDispose]();
  await cluster[Symbol.asyncDispose]();
}, 60_000);

/** A stream to its end, over as many connections as it takes. Every answer but 200 is an error that a client would see. */
async function follow(client: RawClient, first: HttpAnswer): Promise<readonly SseItem[]> {
  const items: SseItem[] = [];
  let answer = first;
  for (;;) {
    const closing = await within('the stream to close', answer.closed, 60_000);
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    if (closing !== 'end') throw new Error(`the stream was cut: ${describeAnswer(answer)}`);
    items.push(...answer.items);
    if (items.some(({ data }) => data.includes('"result"') || data.includes('"error"'))) return items;
    const cursor = items.findLast(({ id }) => id !== undefined)?.id;
    if (cursor === undefined) throw new Error(`the stream ended and cannot be resumed: ${describeAnswer(answer)}`);
    await pause(answer.items.findLast(({ retryMs }) => retryMs !== undefined)?.retryMs ?? 0);
    answer = await client.resume(balancer.url, cursor);
  }
}

interface Work {
  calls: number;
  longestEchoMs: number;
}

async function timeEcho<T>(work: Work, echo: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const result = await echo();
  work.longestEchoMs = Math.max(work.longestEchoMs, performance.now() - started);
  return result;
}

async function workRaw(client: RawClient, until: AbortSignal, work: Work): Promise<void> {
  while (!until.aborted) {
    const counted = await follow(
      client,
      await client.callTool(balancer.url, 'countdown', { from: STEPS, intervalMs: INTERVAL_MS }),
    );
    const messages = checkStream(client.sessionId, counted).map(
      ({ data }) => JSON.parse(data) as { params?: { progress: number }; result?: { content: { text: string }[] } },
    );
    expect(messages.map(({ params, result }) => params?.progress ?? result?.content[0]?.text)).toEqual([
      ...EXPECTED,
      `done ${STEPS}`,
    ]);
    const text = `echo ${work.calls}`;
    const items = await timeEcho(work, async () =>
      follow(client, await client.callTool(balancer.url, 'echo', { text })),
    );
    const echoed = checkStream(client.sessionId, items);
    expect(echoed).toHaveLength(1);
    expect(echoed[0]?.data).toContain(text);
    work.calls += 2;
  }
}

async function workOfficial(client: OfficialClient, until: AbortSignal, work: Work): Promise<void> {
  while (!until.aborted) {
    const seen: number[] = [];
    const done = await client.callTool(
      'countdown',
      { from: STEPS, intervalMs: INTERVAL_MS },
      { onProgress: (step) => seen.push(step) },
    );
    expect(done).toBe(`done ${STEPS}`);
    expect(seen).toEqual(EXPECTED);
    const text = `echo ${work.calls}`;
    expect(await timeEcho(work, () => client.callTool('echo', { text }))).toBe(text);
    work.calls += 2;
  }
}

it('[E2E-ROLLING] all gateways and workers are replaced one after the other under 50 clients, and none sees an error, misses or repeats a message', async () => {
  showLogsOnFailure(cluster);
  const raws = await Promise.all(Array.from({ length: RAW_CLIENTS }, () => RawClient.connect(balancer.url)));
  const officials = await Promise.all(
    CLIENT_LINES.flatMap((line) =>
      Array.from({ length: OFFICIAL_CLIENTS_A_LINE }, () => connectOfficial(line, { url: balancer.url })),
    ),
  );
  const finish = new AbortController();
  const work: Work = { calls: 0, longestEchoMs: 0 };
  const workers = [
    ...raws.map((client) => workRaw(client, finish.signal, work)),
    ...officials.map((client) => workOfficial(client, finish.signal, work)),
  ];
  const failures: unknown[] = [];
  for (const worker of workers) worker.catch((error: unknown) => failures.push(error));

  const stopMs: Record<string, number[]> = { gateway: [], worker: [] };
  for (const role of ['gateway', 'worker'] as const) {
    for (const place of [0, 1]) {
      const before = work.calls;
      await waitUntil('work of all clients', () => work.calls > before + 50 || failures.length > 0, 30_000);
      const started = performance.now();
      const exit = await (role === 'gateway' ? cluster.gateways : cluster.workers)[place]!.stop();
      stopMs[role]?.push(Math.round(performance.now() - started));
      expect(exit, `${role} ${place}`).toEqual({ code: 0, signal: null });
      await (role === 'gateway' ? cluster.startGateway(place) : cluster.startWorker(place));
    }
  }
  const before = work.calls;
  await waitUntil('work of all clients', () => work.calls > before + 50 || failures.length > 0, 30_000);
  finish.abort();
  expect(failures).toEqual([]);
  await within('all clients to finish', Promise.all(workers), 60_000);
  process.stdout.write(
    `rolling-replacement: ${work.calls} calls; planned stops took ${JSON.stringify(stopMs)} ms; ${JSON.stringify([...balancer.served.values()])} requests by gateway; longest echo ${work.longestEchoMs.toFixed(0)} ms\n`,
  );

  // Their standalone streams have come along as well.
  for (const [index, client] of officials.entries()) {
    await client.callTool('notify_later', { text: `later ${index}`, ms: 1 });
    await waitUntil('a message on the standalone stream', () => client.logged.length > 0);
    expect(client.logged).toEqual([`later ${index}`]);
    expect(client.errors).toEqual([]);
    await client[Symbol.asyncDispose]();
  }
}, 300_000);
