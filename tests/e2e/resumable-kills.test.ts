import { setTimeout as pause } from 'node:timers/promises';
import { startCluster, waitUntil } from '@throughline/testkit/processes';
import type { Cluster } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { SERVER_V2 } from './fixtures/paths.ts';
import { it, makeLog } from './log-under-test.ts';
import { CLIENT_LINES } from './official-client.ts';
import { createRecordingFetch } from './recording-fetch.ts';
import { connectResumable } from './resumable-client.ts';
import { showLogsOnFailure } from './show-logs.ts';

const STEPS = 30;
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

describe.each(CLIENT_LINES)('the resumable transport of client %s', (line) => {
  it('[CLIENT-KILLS] a call whose connections are cut again and again delivers each message once, in order', async () => {
    showLogsOnFailure(cluster);
    const url = cluster.urls()[0]!;
    const recording = createRecordingFetch({ pick: () => url });
    await using client = await connectResumable(line, url, { fetch: recording.fetch, initialDelayMs: 30 });
    const seen: number[] = [];
    const call = client.callTool('countdown', { from: STEPS, intervalMs: 15 }, (step) => seen.push(step));
    for (const step of [3, 9, 9, 20]) {
      await waitUntil(`step ${step}`, () => seen.length >= step);
      recording.cut();
    }
    expect(await call).toBe(`done ${STEPS}`);
    expect(seen).toEqual(EXPECTED);
    expect(recording.answers.filter(({ lastEventId }) => lastEventId !== null).length).toBeGreaterThanOrEqual(4);
  });

  it('[CLIENT-KILLS] a call goes on over another gateway when its own is killed, and what was said meanwhile is heard', async () => {
    showLogsOnFailure(cluster);
    let target = cluster.urls()[0]!;
    const recording = createRecordingFetch({ pick: () => target });
    await using client = await connectResumable(line, target, { fetch: recording.fetch, initialDelayMs: 30 });
    for (let round = 0; round < 4; round++) {
      const place = round % 2;
      const victim = cluster.gateways[place]!;
      target = victim.url;
      recording.cut();
      const seen: number[] = [];
      const call = client.callTool('countdown', { from: STEPS, intervalMs: 15 }, (step) => seen.push(step));
      await waitUntil('the first steps', () => seen.length > 2 * round);
      await client.callTool('notify_later', { text: `round ${round}`, ms: 40 });
      await pause(20 * round);
      await victim.kill();
      target = cluster.gateways[1 - place]!.url;
      expect(await call).toBe(`done ${STEPS}`);
      expect(seen).toEqual(EXPECTED);
      await waitUntil('the log message', () => client.logged.length > round);
      await cluster.startGateway(place);
    }
    expect(client.logged).toEqual(['round 0', 'round 1', 'round 2', 'round 3']);
  }, 90_000);
});
