/** The place of a client as text, for a store: what a new process needs to go on. SPEC: CLIENT-SAVED. */
import { isJsonRpcId } from '@throughline/protocol';
import type { JsonRpcId, JsonRpcRequest } from '@throughline/protocol';
import { TransportError } from './client-errors.ts';
import { newStream } from './stream-checkpoint.ts';
import type { ProcessedEvent, StreamCheckpoint } from './stream-checkpoint.ts';
import type { Numbering } from './verdict.ts';

export type Params = Readonly<Record<string, unknown>>;

export interface SavedCall {
  readonly id: JsonRpcId;
  readonly method: string;
  readonly stream: StreamCheckpoint;
}

export interface SavedSession {
  readonly sessionId: string | null;
  readonly epoch: string | null;
  readonly numbering: Numbering | null;
  readonly protocolVersion: string;
  /** How many processes have served it. */
  readonly process: number;
  readonly initialize: Params;
  readonly result: Params;
  readonly logLevel: Params | null;
  readonly subscriptions: readonly Params[];
  readonly standalone: StreamCheckpoint | null;
  readonly calls: readonly SavedCall[];
  /** Requests of the server that the application has not answered. */
  readonly serverRequests: readonly JsonRpcRequest[];
}

const FORMAT = 1;

export function formatSession(saved: SavedSession): string {
  return JSON.stringify({ v: FORMAT, ...saved });
}

/** Throws a `TransportError` (`STORE`) for anything that {@link formatSession} did not write. */
export function parseSession(text: string): SavedSession {
  try {
    return readSession(JSON.parse(text));
  } catch (cause) {
    throw new TransportError('STORE', 'The kept checkpoint cannot be read; a new session is begun', { cause });
  }
}

function readSession(value: unknown): SavedSession {
  const fields = asObject(value);
  if (fields['v'] !== FORMAT) throw new TypeError(`field v must be ${FORMAT}`);
  return {
    sessionId: asTextOrNull(fields['sessionId']),
    epoch: asTextOrNull(fields['epoch']),
    numbering: asNumbering(fields['numbering']),
    protocolVersion: asText(fields['protocolVersion']),
    process: asCount(fields['process']),
    initialize: asObject(fields['initialize']),
    result: asObject(fields['result']),
    logLevel: fields['logLevel'] === null ? null : asObject(fields['logLevel']),
    subscriptions: asList(fields['subscriptions']).map(asObject),
    standalone: fields['standalone'] === null ? null : readStream(fields['standalone']),
    calls: asList(fields['calls']).map(asObject).map(readCall),
    serverRequests: asList(fields['serverRequests']).map(readRequest),
  };
}

function readCall({ id, method, stream }: Params): SavedCall {
  return { id: asId(id), method: asText(method), stream: readStream(stream) };
}

function readRequest(value: unknown): JsonRpcRequest {
  const { id, method, params } = asObject(value);
  const request = { jsonrpc: '2.0', id: asId(id), method: asText(method) } as const;
  return params === undefined ? request : { ...request, params: asObject(params) };
}

function readStream(value: unknown): StreamCheckpoint {
  const fields = asObject(value);
  const kind = fields['kind'];
  if (kind !== 'request' && kind !== 'standalone') throw new TypeError('field kind must be request or standalone');
  const requestId = fields['requestId'] === null ? null : asId(fields['requestId']);
  const names = { sessionId: asTextOrNull(fields['sessionId']), epoch: asTextOrNull(fields['epoch']) };
  return {
    ...newStream(kind, requestId, names),
    lastEventId: asTextOrNull(fields['lastEventId']),
    last: fields['last'] === null ? null : readEvent(fields['last']),
    seq: fields['seq'] === null ? null : asCount(fields['seq']),
    chain: asTextOrNull(fields['chain']),
    label: asTextOrNull(fields['label']),
    recent: asList(fields['recent']).map(readEvent),
  };
}

function readEvent(value: unknown): ProcessedEvent {
  const { id, digest } = asObject(value);
  return { id: asText(id), digest: asText(digest) };
}

function asObject(value: unknown): Params {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('an object is needed');
  return value as Params;
}

function asList(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError('a list is needed');
  return value;
}

function asText(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('a text is needed');
  return value;
}

function asTextOrNull(value: unknown): string | null {
  return value === null ? null : asText(value);
}

function asCount(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new TypeError('a count is needed');
  return value as number;
}

function asId(value: unknown): JsonRpcId {
  if (!isJsonRpcId(value)) throw new TypeError('a JSON-RPC id is needed');
  return value;
}

function asNumbering(value: unknown): Numbering | null {
  if (value === null || value === 'chained' || value === 'consecutive' || value === 'opaque') return value;
  throw new TypeError('a numbering is needed');
}
