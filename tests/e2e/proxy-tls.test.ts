/** TLS on both sides of the real proxies, with the lines that docs/operations/proxies.md has for it. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { makeSelfSigned } from '@throughline/testkit';
import type { SelfSigned } from '@throughline/testkit';
import { makeScratchFolder, RawClient, startThroughline, within } from '@throughline/testkit/processes';
import type { GatewayPorts, ThroughlineProcess } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findProxy, PROXY_NAMES } from '../../infra/proxies/find-proxy.ts';
import type { ProxyName, ProxyProgram } from '../../infra/proxies/find-proxy.ts';
import { drawGatewayPorts, startProxy } from '../../infra/proxies/start-proxy.ts';
import type { Proxy } from '../../infra/proxies/start-proxy.ts';
import { showLogsOnFailure } from './show-logs.ts';

type Lines = Readonly<Record<string, readonly string[]>>;
/** Lines of the page by what they replace in the sample. */
const TLS_OF_CLIENTS: Readonly<Record<ProxyName, Lines>> = {
  haproxy: { 'bind 127.0.0.1:8080': ['bind 127.0.0.1:8080 ssl crt /etc/haproxy/mcp.pem'] },
  nginx: {
    'listen 127.0.0.1:8080;': [
      'listen 127.0.0.1:8080 ssl;',
      'ssl_certificate /etc/nginx/mcp.pem;',
      'ssl_certificate_key /etc/nginx/mcp.key;',
    ],
  },
};
const TLS_OF_GATEWAYS: Readonly<Record<ProxyName, Lines>> = {
  haproxy: {
    'default-server check': [
      'default-server ssl verify required ca-file /etc/haproxy/gateways-ca.pem verifyhost gateway.internal check',
    ],
  },
  nginx: {
    'proxy_pass http://gateways;': [
      'proxy_pass https://gateways;',
      'proxy_ssl_verify on;',

      'proxy_ssl_trusted_certificate /etc/nginx/gateways-ca.pem;',
      'proxy_ssl_name gateway.internal;',
    ],
  },
};
const PAGE = readFileSync(new URL('../../docs/operations/proxies.md', import.meta.url), 'utf8');
const LIMIT_MS = 60_000;

const found = await Promise.all(PROXY_NAMES.map((name) => findProxy(name, { mayFetch: process.env['DEEP'] === '1' })));
const programs = found.filter((each): each is ProxyProgram => 'file' in each);

const resources = new AsyncDisposableStack();
let folder: string;
let front: SelfSigned;
let own: SelfSigned;
let ports: GatewayPorts;
let gateway: ThroughlineProcess;

beforeAll(async () => {
  if (programs.length === 0) return;
  folder = resources.use(makeScratchFolder()).path;
  front = makeSelfSigned(folder, 'mcp.example');
  own = makeSelfSigned(folder, 'gateway.internal');
  // As HAProxy takes it: one file with both.
  writeFileSync(
    path.join(folder, 'mcp.pem'),
    readFileSync(front.certFile, 'utf8') + readFileSync(front.keyFile, 'utf8'),
  );
  [ports] = await drawGatewayPorts();
  const args = ['--tls-cert', own.certFile, '--tls-key', own.keyFile];
  gateway = resources.use(await startThroughline('serve', { folder, ports, args }));
}, 120_000);
afterAll(() => resources.disposeAsync(), 60_000);

/** The proxy of the page, which believes `ca` of gateways. Resolves when it answers with a status of this kind. */
async function start(
  program: ProxyProgram,
  ca: string,
  isServing = (status: number): boolean => status < 500,
): Promise<Proxy> {
  const files = {
    '/etc/haproxy/mcp.pem': path.join(folder, 'mcp.pem'),
    '/etc/nginx/mcp.pem': front.certFile,
    '/etc/nginx/mcp.key': front.keyFile,
    '/etc/haproxy/gateways-ca.pem': ca,
    '/etc/nginx/gateways-ca.pem': ca,
  };
  const withFiles = (lines: readonly string[]): string =>
    Object.entries(files).reduce((text, [from, to]) => text.replaceAll(from, to), lines.join('\n'));
  const lines = { ...TLS_OF_CLIENTS[program.name], ...TLS_OF_GATEWAYS[program.name] };
  const instead = Object.fromEntries(Object.entries(lines).map(([from, to]) => [from, withFiles(to)]));
  return await startProxy(program, { gateways: [ports, ports], instead, ca: front.ca, isServing });
}

for (const each of found) if ('missing' in each) it.skip(`a proxy: ${each.missing}`, () => undefined);

describe.each(programs)('TLS on both sides of $name', (program) => {
  it('[PRX-TLS] stands in the page with each line', () => {
    for (const lines of [TLS_OF_CLIENTS, TLS_OF_GATEWAYS])
      for (const line of Object.values(lines[program.name]).flat()) expect(PAGE).toContain(line);
  });

  it(
    '[PRX-TLS] a call comes and goes, each step once and in order',
    async () => {
      showLogsOnFailure(gateway);
      await using proxy = await start(program, own.certFile);
      const client = await RawClient.connect(proxy.url, { ca: front.ca });
      const answer = await client.callTool(proxy.url, 'countdown', { from: 3, intervalMs: 50 });
      await within('the end of the call', answer.closed, 20_000);
      const events = answer.events().map(({ data }) => JSON.parse(data) as { params?: { progress?: number } });
      expect(events.flatMap(({ params }) => params?.progress ?? [])).toEqual([1, 2, 3]);
      expect(answer.events().at(-1)?.data).toContain('done 3');
    },
    LIMIT_MS,
  );

  it(
    '[PRX-TLS] a gateway whose certificate is of another CA gets nothing',
    async () => {
      await using proxy = await start(program, front.certFile, (status) => status === 502 || status === 503);
      await expect(RawClient.connect(proxy.url, { ca: front.ca })).rejects.toThrow(/^initialize: 50[23] /);
    },
    LIMIT_MS,
  );
});
