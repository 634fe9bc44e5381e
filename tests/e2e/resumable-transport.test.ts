import { setTimeout as pause } from 'node:timers/promises';
import { formatEventId, parseEventId } from '@throughline/protocol';
import type { EventId } from '@throughline/protocol';
import type { LostSession, RestoredSession } from '@throughline/client';
import { FileCheckpointStore } from '@throughline/client/node';
import { makeScratchFolder, startCluster, waitUntil, within } from '@throughline/testkit/processes';
import type { Cluster } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest';
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

function forged(cursor: string, change: (id: EventId) => EventId): string {
  const id = parseEventId(cursor);
  return id === null ? cursor : formatEventId(change(id));
}

describe.each(CLIENT_LINES)('client %s', (line) => {
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

  it.each<[reason: string, change: (id: EventId) => EventId]>([
    ['beyond-end', (id) => ({ ...id, offset: id.offset + 100_000 })],
    ['diverged', (id) => ({ ...id, crc: (id.crc ^ 1) >>> 0 })],
  ])(
    '[CLIENT-REFUSED] a resume that Throughline refuses as %s fails the call at once, and the next one runs in a new session',
    async (reason, change) => {
      showLogsOnFailure(cluster);
      const url = cluster.urls()[0]!;
      let isForging = false;
      const recording = createRecordingFetch({
        pick: () => url,
        rewriteCursor: (cursor) => (isForging ? forged(cursor, change) : cursor),
      });
      const lost: LostSession[] = [];
      const restored: RestoredSession[] = [];
      await using client = await connectResumable(line, url, {
        fetch: recording.fetch,
        initialDelayMs: 30,
        onSessionLost: (what) => lost.push(what),
        onSessionRestored: (what) => restored.push(what),
      });
      await client.setLogLevel('info');
      const seen: number[] = [];
      const call = client.callTool('countdown', { from: 200, intervalMs: 20 }, (step) => seen.push(step));
      await waitUntil('two steps', () => seen.length >= 2);
      isForging = true;
      recording.cut();
      await expect(within('the call', call)).rejects.toMatchObject({
        data: { type: 'ResumptionRejected', mayHaveRun: true },
      });
      isForging = false;
      expect(await within('the next call', client.callTool('echo', { text: 'again' }))).toBe('again');
      expect(lost).toHaveLength(1);
      // Its standalone stream may have been the first to hear of it.
      expect([reason, 'session-invalid', 'session-ended']).toContain(lost[0]?.rejection.reason);
      expect(restored).toHaveLength(1);
      expect(restored[0]?.sessionId).not.toBe(lost[0]?.sessionId);
      await client.callTool('notify', { text: 'heard' });
      await waitUntil('the log message of the new session', () => client.logged.includes('heard'));
    },
  );

  it('[CLIENT-SAVED] a new process goes on in its session on Throughline: what was said meanwhile is heard once', async () => {
    showLogsOnFailure(cluster);
    const [first = '', second = ''] = cluster.urls();
    const folder = makeScratchFolder();
    onTestFinished(() => folder[Symbol.dispose]());
    const store = new FileCheckpointStore(folder.path);
    const options = { store, storeKey: `client ${line}`, initialDelayMs: 30 };
    const before = await connectResumable(line, first, options);
    await before.callTool('notify_later', { text: 'before', ms: 1 });
    await waitUntil('the message', () => before.logged.length === 1);
    const sessionId = before.transport.sessionId;
    await before.callTool('notify_later', { text: 'meanwhile', ms: 300 });
    await before[Symbol.asyncDispose]();

    await using after = await connectResumable(line, second, options);
    expect(after.transport.sessionId).toBe(sessionId);
    expect(await after.callTool('echo', { text: 'hello' })).toBe('hello');
    await waitUntil('what was said meanwhile', () => after.logged.length > 0);
    expect(after.logged).toEqual(['meanwhile']);
    expect(after.errors).toEqual([]);
  });
});
