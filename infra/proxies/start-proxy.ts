/** A proxy that runs one of the sample configurations of this folder, on ports of its own. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { findFreePort } from '@throughline/testkit';
import { exchange, waitUntil, within } from '@throughline/testkit/processes';
import type { GatewayPorts } from '@throughline/testkit/processes';
import type { ProxyName, ProxyProgram } from './find-proxy.ts';

export interface ProxyOptions {
  /** The two gateways that the samples name. */
  readonly gateways: GatewayPair;
  /** Other values than those of the sample, before its addresses are replaced, such as `{'timeout server 50s': 'timeout server 1s'}`. Default: none. */
  readonly instead?: Readonly<Record<string, string>>;
  /** Trust in its certificate, in PEM, if `instead` has it speak TLS. Default: plain HTTP. */
  readonly ca?: string;
  /** Whether this status says that it serves as it should. Default: one below 500, which a gateway behind it has said. */
  isServing?(status: number): boolean;
}

export interface Proxy extends AsyncDisposable {
  readonly name: ProxyName;
  /** The MCP endpoint through the proxy. */
  readonly url: string;
  /** What it wrote, the newest part. */
  logs(): string;
}

export type GatewayPair = readonly [GatewayPorts, GatewayPorts];

const READY_MS = 20_000;
const STOP_MS = 10_000;
const MAX_LOGS = 64 * 1024;
const SAMPLES: Readonly<Record<ProxyName, string>> = { haproxy: 'haproxy.cfg', nginx: 'nginx.conf' };

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Ports that two gateways keep when they are replaced. */
export async function drawGatewayPorts(): Promise<GatewayPair> {
  const draw = async (): Promise<GatewayPorts> => ({ mcp: await findFreePort(), admin: await findFreePort() });
  return [await draw(), await draw()];
}

export function readSample(name: ProxyName): string {
  return readFileSync(new URL(SAMPLES[name], import.meta.url), 'utf8');
}

/** The sample with other addresses, and with other values where a test asks for them. Throws for one that is not there. Pure. */
export function adaptSample(sample: string, changes: Readonly<Record<string, string>>): string {
  const missing = Object.keys(changes).find((text) => !sample.includes(text));
  if (missing !== undefined) throw new Error(`the sample does not say "${missing}"`);
  return Object.entries(changes).reduce((text, [from, to]) => text.replaceAll(from, to), sample);
}

/** Resolves when it answers. Rejects with what it wrote if it ends before. */
export async function startProxy(
  program: ProxyProgram,
  { gateways, instead = {}, ca, isServing = (status) => status < 500 }: ProxyOptions,
): Promise<Proxy> {
  const port = await findFreePort();
  const [one, two] = gateways;
  const ports = {
    '127.0.0.1:8080': `127.0.0.1:${port}`,
    '127.0.0.1:8081': `127.0.0.1:${one.mcp}`,
    '127.0.0.1:8082': `127.0.0.1:${two.mcp}`,
    ...(program.name === 'haproxy' ? { 'port 9481': `port ${one.admin}`, 'port 9482': `port ${two.admin}` } : {}),
  };
  const folder = mkdtempSync(path.join(tmpdir(), `throughline-${program.name}-`));
  const sample = path.join(folder, SAMPLES[program.name]);
  writeFileSync(sample, adaptSample(readSample(program.name), { ...instead, ...ports }));
  const args =
    program.name === 'haproxy'
      ? ['-db', '-f', sample]
      : ['-e', 'stderr', '-p', folder, '-c', writeNginxMain(folder, sample)];
  const child = spawn(program.file, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...program.environment },
  });
  running.add(child);
  let logs = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      logs = (logs + chunk.toString()).slice(-MAX_LOGS);
    });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', resolve);
    child.once('error', (error) => {
      logs += error.message;
      resolve();
    });
  });
  void exited.then(() => running.delete(child));
  const end = async (): Promise<void> => {
    child.kill('SIGTERM');
    await within(`${program.name} to end`, exited, STOP_MS);
    rmSync(folder, { recursive: true, force: true });
  };
  const url = `${ca === undefined ? 'http' : 'https'}://127.0.0.1:${port}/mcp`;
  try {
    await waitUntil(
      `${program.name} to answer`,
      async () => isServing(await statusOf(url, ca, () => running.has(child))),
      READY_MS,
    );
  } catch (error) {
    await end();
    throw new Error(`${program.name} does not serve the sample:\n${logs}`, { cause: error });
  }
  return { name: program.name, url, logs: () => logs, [Symbol.asyncDispose]: end };
}

/** What a request without anything gets; NaN while nobody answers. */
async function statusOf(url: string, ca: string | undefined, isRunning: () => boolean): Promise<number> {
  if (!isRunning()) throw new Error('it ended');
  try {
    const answer = await exchange(url, { method: 'GET', headMs: 2000, ...(ca === undefined ? {} : { ca }) });
    return answer.status;
  } catch {
    return NaN;
  }
}

/** The main file around a sample, as that of Debian, with all that nginx writes in a folder of its own. */
function writeNginxMain(folder: string, sample: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => {
    mkdirSync(path.join(folder, name));
    return `  ${name}_temp_path ${path.join(folder, name)};`;
  });
  const main = path.join(folder, 'main.conf');
  const text = [
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    'daemon off;',
    'worker_processes auto;',
    `pid ${path.join(folder, 'nginx.pid')};`,
    'error_log stderr;',
    'events {',
    '  worker_connections 768;',
    '}',
    'http {',
    '  sendfile on;',
    '  tcp_nopush on;',
    '  gzip on;',
    '  access_log off;',
    ...temporary,
    `  include ${sample};`,
    '}',
    '',
  ];
  writeFileSync(main, text.join('\n'));
  return main;
}
