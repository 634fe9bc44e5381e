/**
 * `npm run compose:drive`: brings compose up as a project of its own, and calls a tool through HAProxy with an official
 * client. In mid-call the gateway that streams it is killed (before it the other one, if that is tried first), then the
 * broker that leads the session's events. Then holds what the client got against what it must have got. Exit code 0: kept.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { findFreePort } from '@throughline/testkit';
import { errorText } from '@throughline/log';
import { parseSessionId } from '@throughline/protocol';
import { RawClient, waitUntil, within } from '@throughline/testkit/processes';
import { connectOfficial } from '../../tests/e2e/official-client.ts';
import type { OfficialClient } from '../../tests/e2e/official-client.ts';
import { createRecordingFetch } from '../../tests/e2e/recording-fetch.ts';
import type { RecordingFetch } from '../../tests/e2e/recording-fetch.ts';
import { findDocker } from '@throughline/testkit/kafka';
import { ensureImages, IMAGES } from '../docker/images.ts';
import { findCompose } from './compose.ts';
import type { Compose } from './compose.ts';
import { makeComposeSecret } from './make-secret.ts';
import { formatRows, itemsOfCall, judge } from './verdict.ts';

const STEPS = 300;
const INTERVAL_MS = 200;
const UP_MS = 240_000;
const COMMAND_MS = 60_000;
const CALL_MS = 150_000;
/** A client tries again after a second at most. */
const NOTICE_MS = 5000;
const CONNECT_MS = 90_000;

const began = performance.now();
const say = (text: string): void => {
  process.stdout.write(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}\n`);
};

const host = await findDocker();
if (host === null) {
  process.stderr.write('No Docker engine answers. `npm run containers -- start` starts a private one.\n');
  process.exit(1);
}
const scratch = mkdtempSync(path.join(tmpdir(), 'throughline-compose-'));
const port = await findFreePort();
const secrets = path.join(scratch, 'session-secrets');
makeComposeSecret(secrets);
const images = await ensureImages(
  host,
  IMAGES.map(({ variable }) => variable),
  say,
);
const compose = await findCompose(`throughline-drive-${randomUUID().slice(0, 8)}`, {
  ...{ DOCKER_HOST: host, THROUGHLINE_PORT: String(port), THROUGHLINE_SECRETS_FILE: secrets },
  ...images,
});

let isKept = false;
try {
  say(`${compose.name} up: 3 brokers, 2 gateways, 2 workers, HAProxy on port ${port} …`);
  await compose.run(['up', '-d', '--build'], UP_MS);
  isKept = await drive(compose, `http://127.0.0.1:${port}/mcp`);
} catch (error) {
  say(errorText(error));
} finally {
  if (!isKept) await showLogs(compose);
  await compose.run(['down', '-v', '-t', '2'], COMMAND_MS).catch((error: unknown) => {
    say(String(error));
  });
  rmSync(scratch, { recursive: true, force: true });
}
say(
  isKept
    ? 'VERDICT: kept. Every event came once and in order, although a gateway and a broker were killed under it.'
    : 'VERDICT: broken.',
);
process.exitCode = isKept ? 0 : 1;

async function drive(running: Compose, url: string): Promise<boolean> {
  const recording = createRecordingFetch({ pick: () => url });
  await using client = await connect(recording);
  const sessionId = client.sessionId() ?? '';
  const partition = parseSessionId(sessionId)?.id.partition ?? 0;
  say(`connected; the session is on partition ${partition}; calling countdown, ${STEPS} steps of ${INTERVAL_MS} ms`);
  const progress: number[] = [];
  const times: number[] = [];
  const reach = (step: number): Promise<unknown> => waitUntil(`step ${step}`, () => progress.length >= step, CALL_MS);
  const call = client.callTool(
    'countdown',
    { from: STEPS, intervalMs: INTERVAL_MS },
    {
      timeoutMs: CALL_MS,
      onProgress(step) {
        progress.push(step);
        times.push(performance.now());
      },
    },
  );
  call.catch(() => undefined); // awaited below
  await reach(20);
  await kill(running, 'gateway-1');
  // The call streams from one of the two; if it was not that one, then it is the other.
  const isCut = await waitUntil('another connection', () => connectionsOf(recording) > 1, NOTICE_MS).catch(() => false);
  await running.run(['start', 'gateway-1'], COMMAND_MS);
  await waitUntilReady(running, 'gateway-1');
  if (!isCut) await kill(running, 'gateway-2');
  await reach(progress.length + 20);
  await kill(running, `broker-${await findLeader(running, partition)}`);
  const result = await call;
  say(`the call ended; longest silence between two steps ${longestGap(times).toFixed(0)} ms`);

  const items = recording.items();
  const first = itemsOfCall(items)[0]?.id ?? '';
  const observer = await RawClient.of(sessionId).resume(url, first);
  await within('the end of the observation', observer.closed, COMMAND_MS);
  const rows = judge({
    ...{ sessionId, steps: STEPS, progress, result, items },
    // It is resumed behind the first event, which it therefore has from the client.
    observed: [...itemsOfCall(items).slice(0, 1), ...observer.items],
    connections: connectionsOf(recording),
  });
  process.stdout.write(`\n${formatRows(rows)}\n\n`);
  return rows.every((row) => row.isKept);
}

/** Answers that streamed events of the call. */
function connectionsOf(recording: RecordingFetch): number {
  const call = new Set(itemsOfCall(recording.items()));
  return recording.answers.filter(({ items }) => items.some((item) => call.has(item))).length;
}

/** The gateways are ready before the workers have claimed their partitions. */
async function connect(recording: RecordingFetch): Promise<OfficialClient> {
  const until = performance.now() + CONNECT_MS;
  for (;;) {
    try {
      return await connectOfficial('v1', { fetch: recording.fetch });
    } catch (error) {
      if (performance.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

async function kill(running: Compose, service: string): Promise<void> {
  await running.run(['kill', '-s', 'SIGKILL', service], COMMAND_MS);
  say(`kill -9 ${service}`);
}

/** The broker that leads a partition of events, asked from inside: brokers are not published. */
async function findLeader(running: Compose, partition: number): Promise<string> {
  const script = `
    const { Kafka, logLevel } = require('/app/node_modules/kafkajs');
    const brokers = ['broker-1:9092', 'broker-2:9092', 'broker-3:9092'];
    const admin = new Kafka({ brokers, logLevel: logLevel.NOTHING }).admin();
    admin.connect()
      .then(() => admin.fetchTopicMetadata({ topics: ['throughline.events'] }))
      .then(({ topics }) => topics[0].partitions.find(({ partitionId }) => partitionId === ${partition}).leader)
      .then((leader) => { process.stdout.write(String(leader)); process.exit(0); });`;
  const { output } = await running.run(['exec', '-T', 'worker-1', 'node', '-e', script], COMMAND_MS);
  return output.trim();
}

async function waitUntilReady(running: Compose, service: string): Promise<void> {
  const script =
    "fetch('http://127.0.0.1:9464/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))";
  await waitUntil(
    `${service} is ready`,
    () =>
      running.run(['exec', '-T', service, 'node', '-e', script], COMMAND_MS).then(
        () => true,
        () => false,
      ),
    COMMAND_MS,
  );
}

async function showLogs(running: Compose): Promise<void> {
  const services = ['gateway-1', 'gateway-2', 'worker-1', 'worker-2', 'haproxy', 'topics'];
  const { output } = await running.run(['logs', '--tail', '15', ...services], COMMAND_MS).catch(() => ({ output: '' }));
  process.stdout.write(output);
}

function longestGap(times: readonly number[]): number {
  return Math.max(0, ...times.slice(1).map((time, index) => time - (times[index] ?? time)));
}
