/** A gateway behind real sockets, on the system's clock. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { systemClock, systemRandom } from '@throughline/log';
import { noMetrics, silentLogger } from '@throughline/telemetry';
import type { Metrics } from '@throughline/telemetry';
import { GatewayConfigSchema } from '../config.ts';
import type { GatewayConfig } from '../config.ts';
import { startGateway } from '../start-gateway.ts';
import type { Gateway } from '../start-gateway.ts';
import { createBackend, keyOf } from './backend.ts';
import type { Backend } from './backend.ts';
import { initialize, JSON_HEADERS, SECRET } from './core-rig.ts';

export interface HttpRig {
  readonly backend: Backend;
  readonly gateway: Gateway;
  readonly port: number;
  /** The MCP endpoint. */
  readonly url: string;
  post(body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** Opens a socket and writes `text`, bytes as they are. */
  raw(text: string): Promise<Socket>;
  /** An initialized session. */
  open(version?: string, headers?: Readonly<Record<string, string>>): Promise<string>;
  stop(): Promise<void>;
}

/** Answered by a real client's headers, without a Host: fetch sets its own. */
export const HEADERS: Readonly<Record<string, string>> = {
  accept: JSON_HEADERS.accept,
  'content-type': JSON_HEADERS['content-type'],
};

export async function createHttpRig(
  config: Partial<GatewayConfig> = {},
  metrics: Metrics = noMetrics,
  partitions = 1,
): Promise<HttpRig> {
  const backend = await createBackend({ clock: systemClock, partitions });
  await backend.startWorker();
  const full = GatewayConfigSchema.parse({
    listen: { host: '127.0.0.1', port: 0 },
    admin: { host: '127.0.0.1', port: 0 },
    servers: ['demo'],
    secrets: [SECRET],
    deadAfterMs: 1_000_000_000,
    drainMs: 100,
    ...config,
  });
  const gateway = await startGateway(full, {
    log: backend.log,
    clock: systemClock,
    random: systemRandom,
    logger: silentLogger,
    metrics,
    renderMetrics: () => Promise.resolve('# metrics\n'),
  });
  const port = Number(new URL(gateway.url).port);
  const url = `${gateway.url}/mcp`;
  const rig: HttpRig = {
    backend,
    gateway,
    port,
    url,
    post: (body, headers = {}) =>
      fetch(url, {
        method: 'POST',
        headers: { ...HEADERS, ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    async raw(text) {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      socket.write(text, 'latin1');
      return socket;
    },
    async open(version = '2025-11-25', headers = {}) {
      const response = await rig.post(initialize(version), headers);
      const session = response.headers.get('mcp-session-id');
      if (session === null) throw new TypeError(`initialize was refused: ${await response.text()}`);
      const key = keyOf(session);
      const request = (await backend.inbound(key.partition)).findLast((record) => record.key === key.key);
      await backend.recordSession(session, version);
      const stream = { kind: 'request', at: request?.offset ?? 0 } as const;
      await backend.say(session, stream, { jsonrpc: '2.0', id: 0, result: {} }, { end: true });
      await response.text();
      return session;
    },
    async stop() {
      await gateway.stop({ drain: false });
      await backend.log.close();
    },
  };
  return rig;
}

/** Waits until `isSo()`; throws after `limitMs`. */
export async function until(isSo: () => boolean | Promise<boolean>, limitMs = 10_000): Promise<void> {
  const end = systemClock.monoMs() + limitMs;
  while (!(await isSo())) {
    if (systemClock.monoMs() > end) throw new Error(`not so within ${limitMs} ms`);
    await new Promise<void>((resolve) => systemClock.setTimer(5, resolve));
  }
}

/** All that the socket says until it closes. */
export async function readAll(socket: Socket): Promise<string> {
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
  socket.on('error', () => undefined);
  if (!socket.closed) await once(socket, 'close');
  return text;
}
