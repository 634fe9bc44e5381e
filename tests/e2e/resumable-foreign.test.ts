import type { LostSession, UnprovenNotice } from '@throughline/client';
import { waitUntil, within } from '@throughline/testkit/processes';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createFixtureServer as createV1 } from '../../services/worker/src/host/testing/fixture-v1.ts';
import { createFixtureServer as createV2 } from '../../services/worker/src/host/testing/fixture-v2.ts';
import { serveOverSdkHttp } from '../../services/worker/src/host/testing/sdk-http-server.ts';
import type { SdkHttpServer, SdkHttpServerOptions } from '../../services/worker/src/host/testing/sdk-http-server.ts';
import { CLIENT_LINES } from './official-client.ts';
import type { ClientLine } from './official-client.ts';
import { connectResumable } from './resumable-client.ts';

const STEPS = 12;
const EXPECTED = Array.from({ length: STEPS }, (_, step) => step + 1);
const PAIRS = CLIENT_LINES.flatMap((client) => CLIENT_LINES.map((server) => [client, server] as const));

async function serve(line: ClientLine, options: SdkHttpServerOptions = {}): Promise<SdkHttpServer> {
  const server = await serveOverSdkHttp(line === 'v1' ? { v1: createV1 } : { v2: createV2 }, options);
  onTestFinished(() => server.close());
  return server;
}

describe.each(PAIRS)('client %s on the official server %s', (clientLine, serverLine) => {
  it('[CLIENT-FOREIGN] under compatible a cut call goes on with each message once, and what is not proved is told', async () => {
    const server = await serve(serverLine);
    const unproven: UnprovenNotice[] = [];
    await using client = await connectResumable(clientLine, server.url, {
      policy: 'compatible',
      initialDelayMs: 30,
      onUnproven: (notice) => unproven.push(notice),
    });
    const seen: number[] = [];
    const call = client.callTool('countdown', { from: STEPS, intervalMs: 30 }, (step) => seen.push(step));
    for (const step of [2, 7]) {
      await waitUntil(`step ${step}`, () => seen.length >= step);
      server.cutConnections();
    }
    expect(await within('the call', call)).toBe(`done ${STEPS}`);
    expect(seen).toEqual(EXPECTED);
    // It names its session on a resume, and has neither epoch nor numbers nor a chain.
    const ofEvents = unproven.filter(({ eventId }) => eventId !== null);
    expect(ofEvents.length).toBeGreaterThan(0);
    for (const { facts } of ofEvents) expect(facts).toEqual(expect.arrayContaining(['epoch', 'sequence', 'content']));
  });

  it('[CLIENT-FOREIGN] under strict a cut call fails at once and says that it may have run; the next one is served', async () => {
    const server = await serve(serverLine);
    const lost: LostSession[] = [];
    await using client = await connectResumable(clientLine, server.url, {
      initialDelayMs: 30,
      onSessionLost: (what) => lost.push(what),
    });
    const seen: number[] = [];
    const call = client.callTool('countdown', { from: STEPS, intervalMs: 30 }, (step) => seen.push(step));
    await waitUntil('two steps', () => seen.length >= 2);
    server.cutConnections();
    await expect(within('the call', call)).rejects.toMatchObject({
      data: { type: 'ResumptionRejected', reason: 'unproven', mayHaveRun: true },
    });
    expect(seen).toEqual(EXPECTED.slice(0, seen.length));
    expect(await within('the next call', client.callTool('echo', { text: 'again' }))).toBe('again');
    expect(lost.map(({ rejection }) => rejection.reason)).toEqual(['unproven']);
  });

  it('[CLIENT-FOREIGN] a server that forgot its sessions is initialized anew, and the caller sees an answer', async () => {
    const server = await serve(serverLine);
    await using client = await connectResumable(clientLine, server.url, { initialDelayMs: 30 });
    await client.setLogLevel('info');
    const before = client.transport.sessionId;
    server.forgetSessions();
    expect(await within('the call', client.callTool('echo', { text: 'again' }))).toBe('again');
    expect(client.transport.sessionId).not.toBe(before);
    await client.callTool('notify', { text: 'heard' });
    await waitUntil('the log message', () => client.logged.includes('heard'));
  });

  it.each([{ isJson: true }, { hasEventStore: false }])(
    '[CLIENT-FOREIGN] calls, elicitation and log messages work with %j',
    async (options) => {
      const server = await serve(serverLine, options);
      await using client = await connectResumable(clientLine, server.url, {});
      expect(await within('a call', client.callTool('echo', { text: 'hello' }))).toBe('hello');
      // In JSON mode a server cannot ask during a call but on its standalone stream.
      await client.setLogLevel('info');
      await within('a log message', client.callTool('notify', { text: 'heard' }));
      await waitUntil('the log message', () => client.logged.includes('heard'));
      if (options.isJson !== true)
        expect(await within('elicitation', client.callTool('ask', { question: 'what?' }))).toContain('forty-two');
    },
  );
});
