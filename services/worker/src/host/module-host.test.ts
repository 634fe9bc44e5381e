import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@throughline/log';
import { silentLogger } from '@throughline/telemetry';
import { afterEach, describe, expect, it } from 'vitest';
import type { McpHost } from './host.ts';
import { createModuleHost } from './module-host.ts';
import { openDriver, textOf } from './testing/host-driver.ts';

const here = import.meta.dirname;
const deps = { logger: silentLogger, clock: systemClock };
const hosts: McpHost[] = [];

function host(module: string, limits = {}, cwd = here): McpHost {
  const created = createModuleHost({ module, cwd }, deps, limits);
  hosts.push(created);
  return created;
}

/** A module with this source, in a directory of its own. */
function moduleWith(source: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'throughline-module-')), 'server.mjs');
  writeFileSync(file, source);
  return file;
}

afterEach(async () => {
  await Promise.all(hosts.splice(0).map((one) => one.close()));
});

describe.each(['v1', 'v2'])('a module host with an unmodified SDK %s server', (line) => {
  const module = `./testing/fixture-${line}.ts`;

  it('[HOST-MODULE-SDK] serves initialize, lists and calls, each session its own server', async () => {
    const one = host(module);
    const first = await openDriver(one, { sessionId: 'a' });
    const second = await openDriver(one, { sessionId: 'b' });
    const result = await first.initialize();
    expect(result['serverInfo']).toMatchObject({ name: `fixture-${line}` });
    expect(result['protocolVersion']).toBe('2025-11-25');
    await second.initialize();
    expect(await first.call('echo', { text: 'grüße' })).toBe('grüße');
    expect(await second.call('echo', { text: '2' })).toBe('2');
    expect(first.received.length + second.received.length).toBe(4);
  });

  it('[HOST-ORDER] [HOST-RELATED] gives progress before the result, in order, related to its call', async () => {
    const driver = await openDriver(host(module));
    await driver.initialize();
    expect(await driver.call('countdown', { from: 50 }, { progressToken: 'p' })).toBe('done 50');
    const items = driver.received.filter((item) => item.related === 'c2');
    const steps = items
      .slice(0, -1)
      .map(({ message }) => ('method' in message ? message.params?.['progress'] : 'response'));
    expect(steps).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    expect(items.at(-1)?.message).toHaveProperty('result');
  });

  it('[HOST-MODULE-CALL] relates a question of a running call to that call, although the SDK does not tell', async () => {
    const driver = await openDriver(host(module));
    await driver.initialize();
    expect(await driver.call('ask', { question: 'why?' })).toBe('accept {"answer":"42"}');
    const asked = driver.received.find(({ message }) => 'method' in message && message.method === 'elicitation/create');
    expect(asked?.related).toBe('c2');
    expect(await driver.call('sample', { prompt: 'p' })).toBe('{"type":"text","text":"sampled"}');
    const sampled = driver.received.find(({ message }) => 'method' in message && message.method.startsWith('sampling'));
    expect(sampled?.related).toBe('c3');
  });

  it('[HOST-RELATED] leaves a notification of no call unrelated', async () => {
    const driver = await openDriver(host(module));
    await driver.initialize();
    expect(await driver.call('notify', { text: 'hello' })).toBe('notified');
    const item = driver.received.find(
      ({ message }) => 'method' in message && message.method === 'notifications/message',
    );
    expect(item).toMatchObject({ message: { params: { data: 'hello' } }, related: undefined });
  });

  it('[HOST-MODULE-POLL] offers to close the stream only to a client that can poll', async () => {
    const driver = await openDriver(host(module));
    await driver.initialize();
    const params = { name: 'close_stream', arguments: {} };
    expect(textOf(await driver.request('tools/call', params, false))).toBe('cannot close');
    expect(driver.closedStreams).toEqual([]);
    expect(textOf(await driver.request('tools/call', params, true))).toBe('closed');
    expect(driver.closedStreams).toEqual(['c3']);
  });

  it('[HOST-MODULE-CANCEL] a cancelled call sends nothing more', async () => {
    const driver = await openDriver(host(module));
    await driver.initialize();
    const params = { name: 'countdown', arguments: { from: 3, intervalMs: 30 }, _meta: { progressToken: 1 } };
    await driver.session.deliver({ jsonrpc: '2.0', id: 77, method: 'tools/call', params }, { canPoll: true });
    await driver.waitFor((item) => item.related === 77);
    await driver.notify('notifications/cancelled', { requestId: 77 });
    const seen = driver.received.filter((item) => item.related === 77).length;
    expect(await driver.call('countdown', { from: 6, intervalMs: 30 })).toBe('done 6');
    expect(driver.received.filter((item) => item.related === 77)).toHaveLength(seen);
  });

  it('[HOST-BACKPRESSURE] a handler that awaits its sends is slowed by the consumer', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let taken = 0;
    const driver = await openDriver(host(module), {
      async onMessage(message) {
        if (!('method' in message)) return;
        taken += 1;
        await held;
      },
    });
    await driver.initialize();
    const done = driver.call('countdown', { from: 100 }, { progressToken: 'p' });
    await driver.call('read_only', { ms: 50 });
    expect(taken).toBe(1);
    release();
    expect(await done).toBe('done 100');
    expect(taken).toBe(100);
  });

  it('[HOST-CLOSE] close aborts what runs, and nothing comes after it', async () => {
    const driver = await openDriver(host(module));
    await driver.initialize();
    const params = { name: 'countdown', arguments: { from: 1000, intervalMs: 5 }, _meta: { progressToken: 1 } };
    await driver.session.deliver({ jsonrpc: '2.0', id: 5, method: 'tools/call', params }, { canPoll: true });
    await driver.waitFor((item) => item.related === 5);
    await driver.session.close();
    await driver.session.close();
    const seen = driver.received.length;
    await expect(driver.request('ping')).rejects.toMatchObject({ code: 'HOST_GONE' });
    const other = await openDriver(host(module));
    await other.initialize();
    await other.call('read_only', { ms: 30 });
    expect(driver.received).toHaveLength(seen);
    expect(driver.goneReasons).toEqual([]);
  });

  it('[HOST-SIGNAL] the end of the signal closes the session', async () => {
    const driver = await openDriver(host(module));
    await driver.initialize();
    driver.abort();
    await expect(driver.request('ping')).rejects.toMatchObject({ code: 'HOST_GONE' });
  });
});

describe('a module host', () => {
  it('[HOST-MODULE-CONTEXT] gives the factory session, principal and a signal that ends with the session', async () => {
    const file = moduleWith(`
      export const seen = [];
      export default (ctx) => { seen.push(ctx); return { connect: async () => {}, close: async () => {} }; };
    `);
    const driver = await openDriver(host(file), { sessionId: 's-9' });
    const { seen } = (await import(/* @vite-ignore */ file)) as {
      seen: { sessionId: string; principal: string; signal: AbortSignal }[];
    };
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ sessionId: 's-9', principal: 'tester' });
    expect(seen[0]?.signal.aborted).toBe(false);
    await driver.session.close();
    expect(seen[0]?.signal.aborted).toBe(true);
  });

  it.each([
    ['no such file', './nowhere.mjs', /nowhere\.mjs/],
    ['no such package', 'no-such-package-anywhere', /no-such-package-anywhere/],
    ['no factory', moduleWith('export const createServer = () => {};'), /default export.*createServer.*export default/],
    ['a default that is no function', moduleWith('export default { a: 1 };'), /default export/],
    ['a module that throws', moduleWith('throw new Error("boom at import")'), /boom at import/],
    ['a factory that throws', moduleWith('export default () => { throw new Error("no database"); };'), /no database/],
    ['a factory that rejects', moduleWith('export default async () => { throw new Error("no db"); };'), /no db/],
    ['a factory that returns nothing', moduleWith('export default () => {};'), /did not return an MCP server/],
  ])(
    '[HOST-MODULE-CONFIG] rejects with HOST_CONFIG and a message that names the fault: %s',
    async (_, module, text) => {
      const opening = openDriver(host(module));
      await expect(opening).rejects.toMatchObject({ name: 'HostError', code: 'HOST_CONFIG' });
      await expect(opening).rejects.toThrow(text);
    },
  );

  it('[HOST-MODULE-CONFIG] what is neither a file nor a package says where it was looked for and how a file is written', async () => {
    await expect(openDriver(host('server-of-mine.js', {}, '/tmp'))).rejects.toMatchObject({
      code: 'HOST_CONFIG',
      message:
        'module "server-of-mine.js" is neither a file in /tmp nor a package that is installed there. A file is written with its path, for example ./server.js.',
    });
  });

  it('[HOST-MODULE-CONFIG] names the fix if the factory returns the same server twice', async () => {
    const file = moduleWith(`
      let connected = false;
      const server = { async connect() { if (connected) throw new Error('Already connected'); connected = true; }, async close() {} };
      export default () => server;
    `);
    const one = host(file);
    await openDriver(one);
    await expect(openDriver(one)).rejects.toThrow(/new server from each call/);
  });

  it('[HOST-MODULE-DEADLINE] rejects with HOST_TIMEOUT if the factory does not finish, and closes a server that comes late', async () => {
    const file = moduleWith(`
      export const state = { closed: 0, finish: undefined };
      const server = { async connect() {}, async close() { state.closed += 1; } };
      export default () => new Promise((resolve) => { state.finish = () => resolve(server); });
    `);
    // Imported first, so that the time is the factory's alone.
    const { state } = (await import(/* @vite-ignore */ file)) as { state: { closed: number; finish(): void } };
    await expect(openDriver(host(file, { openMs: 300 }))).rejects.toMatchObject({ code: 'HOST_TIMEOUT' });
    state.finish();
    await expect.poll(() => state.closed).toBe(1);
  });

  it('[HOST-MODULE-DEADLINE] rejects with HOST_TIMEOUT if the import does not finish', async () => {
    const file = moduleWith('await new Promise((resolve) => setTimeout(resolve, 2000)); export default () => null;');
    await expect(openDriver(host(file, { openMs: 100 }))).rejects.toMatchObject({
      code: 'HOST_TIMEOUT',
      message: expect.stringMatching(/the import of module/) as string,
    });
  });

  it('[HOST-CLOSE] is bounded although the server never finishes to close', async () => {
    const file = moduleWith('export default () => ({ connect: async () => {}, close: () => new Promise(() => {}) });');
    const driver = await openDriver(host(file, { closeMs: 20 }));
    await driver.session.close();
  });

  it('[HOST-GONE-ONCE] tells once that a server closed its own connection', async () => {
    const file = moduleWith(`
      export default () => ({
        async connect(transport) { transport.onmessage = () => { void transport.close(); void transport.close(); }; },
        async close() {},
      });
    `);
    const driver = await openDriver(host(file));
    await driver.notify('go');
    expect(await driver.waitGone()).toMatch(/closed/);
    await expect(driver.notify('again')).rejects.toMatchObject({ code: 'HOST_GONE' });
    expect(driver.goneReasons).toHaveLength(1);
  });

  it('[HOST-MODULE-ANSWER] answers a request with an error if the server throws while taking it', async () => {
    const file = moduleWith(`
      export default () => ({
        async connect(transport) { transport.onmessage = () => { throw new Error('secret'); }; },
        async close() {},
      });
    `);
    const driver = await openDriver(host(file));
    const response = await driver.request('ping');
    expect(response.error).toMatchObject({ code: -32603, data: { code: 'SERVER_FAILED' } });
  });

  it('[HOST-CLOSE] the closed host opens nothing more', async () => {
    const one = host('./testing/fixture-v2.ts');
    await one.close();
    await expect(openDriver(one)).rejects.toMatchObject({ code: 'HOST_GONE' });
  });

  it('[HOST-MODULE-RESOLVE] finds a package of the product, a path without ./, and a package beside the working directory', async () => {
    const driver = await openDriver(host('@throughline/worker/demo-server'));
    expect((await driver.initialize())['serverInfo']).toMatchObject({ name: 'throughline-demo' });
    await openDriver(host('testing/fixture-v2.ts'));
    const { mkdirSync } = await import('node:fs');
    const cwd = mkdtempSync(join(tmpdir(), 'throughline-cwd-'));
    const folder = join(cwd, 'node_modules', 'import-only');
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      join(folder, 'package.json'),
      JSON.stringify({ name: 'import-only', type: 'module', exports: { './server': { import: './main.js' } } }),
    );
    writeFileSync(
      join(folder, 'main.js'),
      'export default () => ({ connect: async () => {}, close: async () => {} });',
    );
    await openDriver(host('import-only/server', {}, cwd));
  });
});
