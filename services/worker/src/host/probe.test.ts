import { join } from 'node:path';
import { systemClock } from '@throughline/log';
import { silentLogger } from '@throughline/telemetry';
import { describe, expect, it } from 'vitest';
import { ServerSchema } from '../config.ts';
import { createHost } from './create-host.ts';
import type { McpHost } from './host.ts';
import { createModuleHost } from './module-host.ts';
import { probeServer } from './probe.ts';
import { createFixtureServer } from './testing/fixture-v1.ts';
import { serveOverSdkHttp } from './testing/sdk-http-server.ts';

const deps = { logger: silentLogger, clock: systemClock };
const fixtures = join(import.meta.dirname, 'testing');
const hostFor = (config: object): McpHost => createHost(ServerSchema.parse(config), deps);
const node = `'${process.execPath}'`;

/** A host whose server answers as `answers` says; a missing answer never comes. */
function fakeHost(
  answers: Record<string, (params: Record<string, unknown>) => object>,
): McpHost & { opened: number; closed: number } {
  const fake = {
    kind: 'fake',
    opened: 0,
    closed: 0,
    open: (...[, callbacks]: Parameters<McpHost['open']>) => {
      fake.opened += 1;
      return Promise.resolve({
        deliver(message: { id?: string; method?: string; params?: Record<string, unknown> }) {
          const answer = answers[message.method ?? '']?.(message.params ?? {});
          if (answer !== undefined) void callbacks.onMessage({ jsonrpc: '2.0', id: message.id ?? '', ...answer });
          return Promise.resolve();
        },
        close() {
          fake.closed += 1;
          return Promise.resolve();
        },
      } as unknown as Awaited<ReturnType<McpHost['open']>>);
    },
    close: () => Promise.resolve(),
  };
  return fake;
}

const initialize = (): object => ({ result: { serverInfo: { name: 'fake' }, capabilities: { tools: {} } } });

describe('probeServer', () => {
  it('[HOST-PROBE] [HOST-CREATE] gives name, capabilities and the hints of each tool, over every kind of host', async () => {
    const upstream = await serveOverSdkHttp({ v1: createFixtureServer });
    const hosts = [
      hostFor({ module: 'fixture-v1.ts', cwd: fixtures }),
      hostFor({ stdio: `${node} fixture-v1-stdio.ts`, cwd: fixtures, env: { A: '1' } }),
      hostFor({ upstream: upstream.url, headers: { 'x-key': 'k' } }),
    ];
    expect(hosts.map(({ kind }) => kind)).toEqual(['module', 'stdio', 'upstream']);
    try {
      for (const host of hosts) {
        const profile = await probeServer(host, { timeoutMs: 10_000, clock: systemClock });
        expect(profile.serverInfo).toMatchObject({ name: 'fixture-v1', version: '1.0.0' });
        expect(profile.capabilities).toMatchObject({ logging: {}, tools: {} });
        expect(Object.fromEntries(profile.tools)).toMatchObject({
          effect: { readOnly: false, idempotent: false },
          idempotent_effect: { readOnly: false, idempotent: true },
          read_only: { readOnly: true, idempotent: false },
        });
      }
      expect(upstream.openSessions()).toBe(0);
      expect(upstream.requests[0]?.headers).toMatchObject({ 'x-key': 'k' });
    } finally {
      await Promise.all(hosts.map((host) => host.close()));
      await upstream.close();
    }
  });

  it('[HOST-PROBE] reads every page of the tools', async () => {
    const host = fakeHost({
      initialize,
      'tools/list': ({ cursor }) => {
        const page = Number(cursor ?? 0);
        const tools = [{ name: `t${String(page)}`, annotations: { readOnlyHint: page === 2 } }, { noName: true }];
        return { result: { tools, ...(page < 3 ? { nextCursor: String(page + 1) } : {}) } };
      },
    });
    const { tools } = await probeServer(host, { timeoutMs: 1000, clock: systemClock });
    expect([...tools.keys()]).toEqual(['t0', 't1', 't2', 't3']);
    expect(tools.get('t2')).toEqual({ readOnly: true, idempotent: false });
    expect(host).toMatchObject({ opened: 1, closed: 1 });
  });

  it('[HOST-PROBE] does not ask a server without tools for its tools', async () => {
    const host = fakeHost({ initialize: () => ({ result: { capabilities: { prompts: {} } } }) });
    const profile = await probeServer(host, { timeoutMs: 1000, clock: systemClock });
    expect(profile).toEqual({ serverInfo: {}, capabilities: { prompts: {} }, tools: new Map() });
  });

  it.each<[string, Parameters<typeof fakeHost>[0], string, RegExp]>([
    [
      'an error to initialize',
      { initialize: () => ({ error: { code: -32603, message: 'no licence' } }) },
      'HOST_CONFIG',
      /initialize with error -32603: no licence/,
    ],
    [
      'an error to tools/list',
      { initialize, 'tools/list': () => ({ error: { code: -32601, message: 'what?' } }) },
      'HOST_CONFIG',
      /tools\/list with error -32601/,
    ],
    [
      'a list of tools without end',
      { initialize, 'tools/list': () => ({ result: { tools: [], nextCursor: 'same' } }) },
      'HOST_CONFIG',
      /does not end/,
    ],
    ['no answer to initialize', {}, 'HOST_TIMEOUT', /initialize in 60 ms/],
    ['no answer to tools/list', { initialize }, 'HOST_TIMEOUT', /tools\/list in 60 ms/],
  ])(
    '[HOST-PROBE-FAULT] %s is a HostError that says so, and the instance is closed',
    async (_, answers, code, text) => {
      const host = fakeHost(answers);
      const probing = probeServer(host, { timeoutMs: 60, clock: systemClock });
      await expect(probing).rejects.toMatchObject({ name: 'HostError', code });
      await expect(probing).rejects.toThrow(text);
      expect(host.closed).toBe(1);
    },
  );

  it('[HOST-PROBE-FAULT] a child that dies is told with its code and last words', async () => {
    const host = hostFor({ stdio: `${node} -e "console.error('no such database'); process.exit(4)"` });
    const probing = probeServer(host, { timeoutMs: 5000, clock: systemClock });
    await expect(probing).rejects.toMatchObject({ code: 'HOST_GONE' });
    await expect(probing).rejects.toThrow(/exited with code 4.*no such database/);
  });

  it('[HOST-PROBE-FAULT] a child that says nothing is told with its last words', async () => {
    const host = hostFor({ stdio: `${node} -e "console.error('waiting for a licence'); process.stdin.resume()"` });
    const probing = probeServer(host, { timeoutMs: 1500, clock: systemClock });
    await expect(probing).rejects.toMatchObject({ code: 'HOST_TIMEOUT' });
    await expect(probing).rejects.toThrow(/initialize in 1500 ms.*waiting for a licence/);
  });

  it('[HOST-PROBE-FAULT] an upstream that cannot be reached is told as such', async () => {
    const upstream = await serveOverSdkHttp({ v1: createFixtureServer });
    await upstream.close();
    const probing = probeServer(hostFor({ upstream: upstream.url }), { timeoutMs: 5000, clock: systemClock });
    await expect(probing).rejects.toThrow(/cannot be reached/);
  });

  it('[HOST-PROBE-FAULT] a signal stops it', async () => {
    const controller = new AbortController();
    const host = fakeHost({});
    const probing = probeServer(host, { timeoutMs: 5000, clock: systemClock, signal: controller.signal });
    controller.abort();
    await expect(probing).rejects.toMatchObject({ code: 'HOST_GONE' });
    await expect.poll(() => host.closed).toBe(1);
  });

  it('[HOST-PROBE-FAULT] the fault of a module is told as it is', async () => {
    const host = createModuleHost({ module: join(fixtures, 'nowhere.ts') }, deps);
    await expect(probeServer(host, { timeoutMs: 5000, clock: systemClock })).rejects.toThrow(/nowhere\.ts/);
  });
});

describe('createHost', () => {
  it('[HOST-CREATE] refuses a command line that cannot be split', () => {
    expect(() => hostFor({ stdio: "node 'open" })).toThrow(/closing/);
  });
});
