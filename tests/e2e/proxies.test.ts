/**
 * The sample configurations of infra/proxies in front of two gateways. Change lane: what takes seconds, with the proxies
 * that are on the machine or in the cache. Deep lane: all of it, with proxies from Debian's packages.
 */
import process from 'node:process';
import { describeAnswer, RawClient, startCluster, waitUntil, within } from '@throughline/testkit/processes';
import type { Cluster, HttpAnswer } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findProxy, PROXY_NAMES } from '../../infra/proxies/find-proxy.ts';
import type { ProxyName, ProxyProgram } from '../../infra/proxies/find-proxy.ts';
import { drawGatewayPorts, startProxy } from '../../infra/proxies/start-proxy.ts';
import type { GatewayPair, Proxy } from '../../infra/proxies/start-proxy.ts';
import { SERVER_V2 } from './fixtures/paths.ts';
import { CLIENT_LINES, connectOfficial } from './official-client.ts';
import { connectResumable } from './resumable-client.ts';
import { showLogsOnFailure } from './show-logs.ts';

const isDeep = process.env['DEEP'] === '1';
/** Longer than the longest timeout of the samples: 60 s of nginx. */
const SILENCE_MS = 66_000;
/** Of 100 ms: long enough for a gateway to be killed and started again, and then the other one. */
const STEPS = 150;
const HASTY: Readonly<Record<ProxyName, Readonly<Record<string, string>>>> = {
  haproxy: { 'timeout server 50s': 'timeout server 1s' },
  nginx: { 'proxy_connect_timeout 3s;': 'proxy_connect_timeout 3s; proxy_read_timeout 1s;' },
};

const found = await Promise.all(PROXY_NAMES.map((name) => findProxy(name, { mayFetch: isDeep })));
const programs = found.filter((each): each is ProxyProgram => 'file' in each);

const resources = new AsyncDisposableStack();
const proxies = new Map<ProxyName, Proxy>();
let ports: GatewayPair;
let cluster: Cluster;

beforeAll(async () => {
  if (programs.length === 0) return;
  ports = await drawGatewayPorts();
  cluster = resources.use(
    await startCluster({
      workers: 1,
      gatewayPorts: ports,
      workerArgs: ['--module', SERVER_V2, '--on-owner-loss', 'restore'],
    }),
  );
  for (const program of programs)
    proxies.set(program.name, resources.use(await startProxy(program, { gateways: ports })));
}, 120_000);
afterAll(() => resources.disposeAsync(), 60_000);

function urlOf(name: ProxyName): string {
  return proxies.get(name)?.url ?? '';
}

/** Numbers from 1. */
function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

async function replaceGateway(place: number, how: 'kill' | 'stop'): Promise<void> {
  const gateway = cluster.gateways[place];
  if (gateway === undefined) throw new Error(`no gateway in place ${place}`);
  const exit = await gateway[how]();
  if (how === 'stop') expect(exit).toEqual({ code: 0, signal: null });
  await cluster.startGateway(place);
}

async function statusOfFailure(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    const { code, status } = error as { code?: unknown; status?: unknown };
    return status ?? code;
  }
  throw new Error('it was answered');
}

/** A call to its result, over as many connections as it takes. */
async function follow(url: string, client: RawClient, first: HttpAnswer): Promise<void> {
  for (let answer = first; ;) {
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    await within('the stream to close', answer.closed, 30_000);
    if (answer.events().some(({ data }) => data.includes('"result"'))) return;
    const cursor = answer.lastId();
    if (cursor === undefined) throw new Error(`it cannot be resumed: ${describeAnswer(answer)}`);
    answer = await client.resume(url, cursor);
  }
}

async function waitUntilServed(name: ProxyName): Promise<void> {
  await waitUntil(
    `${name} to serve again`,
    () =>
      RawClient.connect(urlOf(name), { headMs: 5000 }).then(
        () => true,
        () => false,
      ),
    30_000,
  );
}

for (const each of found) if ('missing' in each) it.skip(`a proxy: ${each.missing}`, () => undefined);

describe.each(programs.map(({ name }) => name))('%s as infra/proxies has it', (name) => {
  it('[PRX-DELAY] a question that a tool asks reaches the client at once: nothing else is said until it is answered', async () => {
    showLogsOnFailure(cluster);
    for (const line of CLIENT_LINES) {
      await using client = await connectOfficial(line, { url: urlOf(name) });
      const asked = client.callTool('ask', { question: 'what?' });
      expect(await within('the answer', asked, 20_000)).toBe('accept {"answer":"forty-two"}');
    }
  }, 60_000);
});

it.runIf(programs.length > 0)(
  '[PRX-KILL] calls through each proxy go on, each step once and in order, while each gateway in turn is killed',
  async () => {
    showLogsOnFailure(cluster);
    const places = [...proxies.values()].flatMap(({ url }) => CLIENT_LINES.map((line) => ({ url, line })));
    const clients = await Promise.all(places.map(({ url, line }) => connectOfficial(line, { url })));
    const calls = clients.map((client) => {
      const steps: number[] = [];
      const onProgress = (step: number): unknown => steps.push(step);
      const done = client.callTool('countdown', { from: STEPS, intervalMs: 100 }, { onProgress, timeoutMs: 90_000 });
      done.catch(() => undefined); // awaited below
      return { steps, done };
    });
    for (const place of [0, 1]) {
      const before = calls.map(({ steps }) => steps.length);
      const hasGoneOn = ({ steps }: { readonly steps: readonly number[] }, index: number): boolean =>
        steps.length > Math.min(STEPS - 1, (before[index] ?? 0) + 3);
      await waitUntil('steps of all calls', () => calls.every(hasGoneOn), 60_000);
      await replaceGateway(place, 'kill');
    }
    for (const { steps, done } of calls) {
      expect(await within('the call', done, 60_000)).toBe(`done ${STEPS}`);
      expect(steps).toEqual(upTo(STEPS));
    }
    for (const client of clients) await client[Symbol.asyncDispose]();
  },
  200_000,
);

describe.runIf(isDeep).each(programs.map(({ name }) => name))('%s, what takes longer', (name) => {
  it('[PRX-BODY] a message of 3 MiB comes and goes', async () => {
    showLogsOnFailure(cluster);
    await using client = await connectOfficial('v2', { url: urlOf(name) });
    const text = 'x'.repeat(3 * 1024 * 1024);
    expect(await client.callTool('echo', { text })).toBe(text);
  }, 60_000);

  it('[PRX-DRAIN] gateways are stopped and replaced as planned, and no client of any revision sees an error', async () => {
    showLogsOnFailure(cluster);
    const clients = await Promise.all(CLIENT_LINES.map((line) => connectOfficial(line, { url: urlOf(name) })));
    const finish = new AbortController();
    const failures: unknown[] = [];
    let calls = 0;
    const repeat = async (once: () => Promise<void>): Promise<void> => {
      while (!finish.signal.aborted && failures.length === 0)
        await once().then(
          () => calls++,
          (error: unknown) => failures.push(error),
        );
    };
    const count = async (client: (typeof clients)[number]): Promise<void> => {
      const steps: number[] = [];
      const onProgress = (step: number): unknown => steps.push(step);
      expect(await client.callTool('countdown', { from: 10, intervalMs: 50 }, { onProgress })).toBe('done 10');
      expect(steps).toEqual(upTo(10));
    };
    const comeAndGo = async (version: string): Promise<void> => {
      const client = await RawClient.connect(urlOf(name), { version });
      await follow(urlOf(name), client, await client.callTool(urlOf(name), 'echo', { text: version }));
      expect((await client.end(urlOf(name))).status).toBe(204);
    };
    const work = [
      ...clients.map((client) => repeat(() => count(client))),
      ...['2025-03-26', '2025-06-18', '2025-11-25'].map((version) => repeat(() => comeAndGo(version))),
    ];
    for (const place of [0, 1]) {
      const before = calls;
      await waitUntil('calls', () => calls > before + 10 || failures.length > 0, 60_000);
      await replaceGateway(place, 'stop');
    }
    const before = calls;
    await waitUntil('calls after it', () => calls > before + 10 || failures.length > 0, 60_000);
    finish.abort();
    await within('the calls to end', Promise.all(work), 60_000);
    expect(failures).toEqual([]);
    for (const client of clients) {
      expect(client.errors).toEqual([]);
      await client[Symbol.asyncDispose]();
    }
  }, 240_000);

  it('[PRX-PAGE] while no gateway is there the page of the proxy fails one request and not the session; our client goes on', async () => {
    showLogsOnFailure(cluster);
    const clients = await Promise.all(CLIENT_LINES.map((line) => connectOfficial(line, { url: urlOf(name) })));
    await using ours = await connectResumable('v2', urlOf(name));
    const steps: number[] = [];
    const call = ours.callTool('countdown', { from: 60, intervalMs: 100 }, (step) => steps.push(step));
    call.catch(() => undefined); // awaited below
    await waitUntil('the first steps', () => steps.length > 3, 30_000);
    await Promise.all(cluster.gateways.map((gateway) => gateway.kill()));
    for (const client of clients) {
      const status = await within('the failure', statusOfFailure(client.callTool('echo', { text: 'gone' })), 20_000);
      expect([502, 503]).toContain(status);
    }
    await Promise.all([0, 1].map((place) => cluster.startGateway(place)));
    await waitUntilServed(name);
    for (const client of clients) {
      expect(await client.callTool('echo', { text: 'here' })).toBe('here');
      await client[Symbol.asyncDispose]();
    }
    expect(await within('our call', call, 60_000)).toBe('done 60');
    expect(steps).toEqual(upTo(60));
  }, 180_000);

  it('[PRX-PAGE] a proxy that gives up on gateways that hang fails one request and not the session; our client goes on', async () => {
    showLogsOnFailure(cluster);
    const program = programs.find((each) => each.name === name)!;
    await using hasty = await startProxy(program, { gateways: ports, instead: HASTY[name] });
    const clients = await Promise.all(CLIENT_LINES.map((line) => connectOfficial(line, { url: hasty.url })));
    await using ours = await connectResumable('v2', hasty.url);
    const steps: number[] = [];
    const call = ours.callTool('countdown', { from: 60, intervalMs: 100 }, (step) => steps.push(step));
    call.catch(() => undefined); // awaited below
    await waitUntil('the first steps', () => steps.length > 3, 30_000);
    for (const gateway of cluster.gateways) gateway.pause();
    try {
      for (const client of clients) {
        const status = await within('the failure', statusOfFailure(client.callTool('echo', { text: 'hangs' })), 20_000);
        expect([503, 504]).toContain(status);
      }
    } finally {
      for (const gateway of cluster.gateways) gateway.resume();
    }
    await waitUntilServed(name);
    for (const client of clients) {
      const again = (): Promise<unknown> =>
        client.callTool('echo', { text: 'here' }, { timeoutMs: 5000 }).catch(() => null);
      await waitUntil('the session to go on', async () => (await again()) === 'here', 30_000);
      await client[Symbol.asyncDispose]();
    }
    expect(await within('our call', call, 60_000)).toBe('done 60');
    expect(steps).toEqual(upTo(60));
  }, 180_000);

  it('[PRX-IDLE] a timeout below the keepalive cuts silent streams, and an official client finishes its call over as many as it takes', async () => {
    showLogsOnFailure(cluster);
    const program = programs.find((each) => each.name === name)!;
    await using hasty = await startProxy(program, { gateways: ports, instead: HASTY[name] });
    const raw = await RawClient.connect(hasty.url);
    const silent = await raw.callTool(hasty.url, 'countdown', { from: 1, intervalMs: 8000 });
    await within('the cut', silent.closed, 6000);
    for (const line of CLIENT_LINES) {
      await using client = await connectOfficial(line, { url: hasty.url });
      // Two cuts: more than three in 10 s would have to wait (GW-TAKEOVER).
      expect(await client.callTool('countdown', { from: 1, intervalMs: 2500 }, { timeoutMs: 40_000 })).toBe('done 1');
    }
  }, 120_000);
});

it.runIf(isDeep && programs.length > 0)(
  '[PRX-IDLE] streams that say nothing for longer than the timeouts of the proxies stay open on the default keepalive, and go on',
  async () => {
    showLogsOnFailure(cluster);
    const begin = async (url: string): Promise<{ listening: HttpAnswer; call: HttpAnswer }> => {
      const client = await RawClient.connect(url);
      const listening = await client.listen(url);
      const call = await client.callTool(url, 'countdown', { from: 1, intervalMs: SILENCE_MS });
      return { listening, call };
    };
    const streams = await Promise.all([...proxies.values()].map(({ url }) => begin(url)));
    let isOver = false;
    for (const { listening } of streams) void listening.closed.then(() => (isOver = true));
    for (const { call } of streams) {
      expect(await within('the end of the call', call.closed, SILENCE_MS + 30_000)).toBe('end');
      expect(call.events().at(-1)?.data).toContain('done 1');
      const keepalives = call.items.filter(({ kind, data }) => kind === 'comment' && data === 'keepalive');
      expect(keepalives.length).toBeGreaterThanOrEqual(4);
    }
    expect(isOver).toBe(false);
    for (const { listening } of streams) listening.cut();
  },
  SILENCE_MS + 90_000,
);
