/** The transport without an SDK: what goes in and what comes out. */
import { ResumableTransport } from '@throughline/client';
import type { LostSession, ResumableTransportOptions, RestoredSession, UnprovenNotice } from '@throughline/client';
import { waitUntil } from '@throughline/testkit/processes';
import { onTestFinished } from 'vitest';
import type { Got } from './got.ts';
import { ScriptedServer } from './scripted-server.ts';

export interface HeardError extends Error {
  readonly code?: string;
  readonly retry?: { readonly attempt: number; readonly inMs: number };
}

export interface ClientRig {
  readonly server: ScriptedServer;
  readonly transport: ResumableTransport;
  /** Messages and reports in the order in which the application heard them. */
  readonly heard: string[];
  readonly got: Got[];
  readonly errors: HeardError[];
  readonly lost: LostSession[];
  readonly restored: RestoredSession[];
  readonly unproven: UnprovenNotice[];
  /** The answer to a call. */
  answer(id: string | number): Promise<Got>;
  call(id: string | number, method?: string, params?: object): Promise<Got>;
}

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 'init',
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'rig', version: '1' } },
} as const;

/** Quick to try again, and patient: a busy machine is no fault of the server. */
const PATIENT = {
  initialDelayMs: 4,
  maxDelayMs: 16,
  giveUpMs: 15_000,
  connectTimeoutMs: 10_000,
  quietMs: 15_000,
} as const;

/** For tests of what happens when patience is over. */
export const SHORT = { giveUpMs: 400, connectTimeoutMs: 200, quietMs: 300 } as const;

export function makeRig(
  options: ResumableTransportOptions = {},
  server = new ScriptedServer(),
  onMessage?: (message: Got) => unknown,
  url = 'http://server.test/mcp',
): ClientRig {
  const heard: string[] = [];
  const got: Got[] = [];
  const errors: HeardError[] = [];
  const lost: LostSession[] = [];
  const restored: RestoredSession[] = [];
  const unproven: UnprovenNotice[] = [];
  const transport = new ResumableTransport(url, {
    fetch: server.fetch,
    ...PATIENT,
    onSessionLost(what) {
      lost.push(what);
      heard.push('lost');
    },
    onSessionRestored(what) {
      restored.push(what);
      heard.push('restored');
    },
    onUnproven: (what) => unproven.push(what),
    ...options,
  });
  transport.onmessage = (message) => {
    const each = message as Got;
    got.push(each);
    heard.push(each.method ?? `${each.error === undefined ? 'result' : 'error'} ${String(each.id)}`);
    return onMessage?.(each);
  };
  transport.onerror = (error) => errors.push(error);
  onTestFinished(() => transport.close());
  const answer = (id: string | number): Promise<Got> =>
    waitUntil(`the answer to ${id}`, () => got.find((each) => each.id === id && each.method === undefined));
  return {
    server,
    transport,
    heard,
    got,
    errors,
    lost,
    restored,
    unproven,
    answer,
    async call(id, method = 'tools/call', params = { name: 'x' }) {
      await transport.send({ jsonrpc: '2.0', id, method, params });
      return await answer(id);
    },
  };
}

/** Connected, as an SDK client would. */
export async function connectRig(...args: Parameters<typeof makeRig>): Promise<ClientRig> {
  const rig = makeRig(...args);
  await rig.transport.start();
  await rig.transport.send(INITIALIZE);
  const { error } = await rig.answer('init');
  if (error !== undefined) throw new Error(error.message);
  rig.got.length = 0;
  rig.heard.length = 0;
  await rig.transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return rig;
}

export function result(id: string | number | undefined, value: object = { ok: true }): object {
  return { jsonrpc: '2.0', id, result: value };
}

export function note(data: unknown): object {
  return { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data } };
}
