import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { waitUntil } from '@throughline/testkit/processes';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Got } from './got.ts';
import { note, result } from './client-rig.ts';
import { ScriptedServer } from './scripted-server.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const README = readFileSync(new URL('../../libs/client/README.md', import.meta.url), 'utf8');
const MAX_GZIP = 18_500;

let text: string;
let packages: string[];

beforeAll(async () => {
  const bundle = await build({
    entryPoints: ['libs/client/src/index.ts'],
    absWorkingDir: ROOT,
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    globalName: 'client',
    // Of Node nothing is found: an import of it fails the build.
    platform: 'browser',
    conditions: ['@throughline/source'],
    metafile: true,
    logLevel: 'silent',
  });
  text = bundle.outputFiles[0]!.text;
  const inputs = Object.keys(bundle.metafile.inputs);
  packages = [
    ...new Set(
      inputs.map((input) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? input.split('/src/')[0]!),
    ),
  ];
});

describe('the entry for browsers and edge runtimes', () => {
  it('[CLIENT-BROWSER] needs nothing of Node, and no package but those that the README names', () => {
    expect(packages.sort()).toEqual(['@noble/hashes', 'eventsource-parser', 'libs/client', 'libs/protocol']);
    for (const name of ['@noble/hashes', 'eventsource-parser']) expect(README).toContain(`\`${name}\``);
  });

  it('[CLIENT-BROWSER] is as small as the README says', () => {
    const size = gzipSync(text, { level: 9 }).length;
    process.stdout.write(`client bundle: ${text.length} bytes, ${size} gzipped\n`);
    expect(size).toBeLessThan(MAX_GZIP);
    expect(README).toContain(`under ${MAX_GZIP / 1000} KB`);
  });

  it('[CLIENT-BROWSER] carries a call over a cut where there are only web globals', async () => {
    const server = new ScriptedServer();
    server.answer = ({ method, headers }) => {
      if (method === 'POST') return server.sse().event('a', note('first')).cut();
      return headers.has('last-event-id') ? server.sse().event('b', result(1)) : new Response(null, { status: 405 });
    };
    const got: Got[] = [];
    const web = { AbortController, Headers, ReadableStream, Response, TextDecoder, TextEncoder, URL };
    const timers = { setTimeout, clearTimeout, performance };
    const context = vm.createContext({
      ...web,
      ...timers,
      fetch: server.fetch,
      onMessage: (message: Got) => got.push(message),
    });
    vm.runInContext(text, context);
    await vm.runInContext(
      `(async () => {
        const transport = new client.ResumableTransport('http://server.test/mcp', { policy: 'compatible', initialDelayMs: 5 });
        transport.onmessage = (message) => { onMessage(message); };
        await transport.start();
        const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } };
        await transport.send({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
        await transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
        await transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} });
      })()`,
      context,
    );
    await waitUntil('the answer', () => got.some(({ id, method }) => id === 1 && method === undefined));
    expect(got.map(({ params, result: answer }) => params?.data ?? answer)).toMatchObject([
      { serverInfo: { name: 'scripted' } },
      'first',
      { ok: true },
    ]);
  });
});
