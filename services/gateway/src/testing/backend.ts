/** What stands behind a gateway in its tests: a memory log, and a worker whose records are written by hand. */
import { createMemoryLog } from '@throughline/log/memory';
import type { MemoryLog } from '@throughline/log/memory';
import type { Clock } from '@throughline/log';
import {
  classifyMessage,
  decodeText,
  makeRecord,
  META_KEY,
  parseSessionId,
  readInboundRecord,
  sessionEndKey,
} from '@throughline/protocol';
import type {
  InboundRecord,
  JsonRpcId,
  LogRecord,
  Offset,
  RecordInput,
  SessionId,
  StreamTarget,
} from '@throughline/protocol';
import { checkpointed, claimed, sent } from '@throughline/testkit';

export const EPOCH = 'aaaaaaaaaa';
export const OTHER_EPOCH = 'bbbbbbbbbb';

export interface BackendOptions {
  readonly clock: Clock;
  /** Default 1. */
  readonly partitions?: number;
  readonly maxRecordBytes?: number;
}

export interface Backend {
  readonly log: MemoryLog;
  /** The claim of each partition. */
  readonly claims: Offset[];
  /** Claims every partition and says so. */
  startWorker(): Promise<void>;
  heartbeat(value: Readonly<Record<string, unknown>>): Promise<void>;
  rotateEpoch(token: string, previous: string | null): Promise<void>;
  /** Appends to `events`. */
  events(partition: number, ...records: readonly RecordInput[]): Promise<readonly Offset[]>;
  /** A message of the owner; a string is sent as it is. */
  say(
    session: string,
    stream: StreamTarget,
    payload: unknown,
    options?: { readonly end?: boolean; readonly answers?: Offset },
  ): Promise<Offset>;
  /** As its worker does: what was negotiated. */
  recordSession(session: string, version: string): Promise<void>;
  endSession(session: string): Promise<void>;
  inbound(partition?: number): Promise<readonly InboundRecord[]>;
  /** Everything in a topic's partition. */
  read(topic: 'inbound' | 'events' | 'meta' | 'sessions', partition?: number): Promise<readonly LogRecord[]>;
}

export function keyOf(session: string): SessionId {
  const parsed = parseSessionId(session);
  if (parsed === null) throw new TypeError(`no session id: ${session}`);
  return parsed.id;
}

export function result(id: JsonRpcId, value: unknown = {}): Readonly<Record<string, unknown>> {
  return { jsonrpc: '2.0', id, result: value };
}

export function progress(step: number): Readonly<Record<string, unknown>> {
  return { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 't', progress: step } };
}

export async function createBackend({ clock, partitions = 1, ...rest }: BackendOptions): Promise<Backend> {
  const log = createMemoryLog({ clock, partitions, clusterId: 'backend', ...rest });
  const claims: Offset[] = [];
  const backend: Backend = {
    log,
    claims,
    async startWorker() {
      for (let partition = claims.length; partition < log.description.partitions; partition++) {
        const [claim = 0] = await backend.events(partition, claimed('w', EPOCH, claims[partition] ?? null));
        claims[partition] = claim;
        await backend.events(partition, checkpointed(claim));
      }
      await backend.heartbeat({ partitions: claims.map((_, partition) => partition) });
    },
    async heartbeat(value) {
      const record = { worker: 'w', epoch: EPOCH, partitions: [], leaving: false, beat: 1, ...value };
      await log.append({ topic: 'meta', partition: 0 }, [
        makeRecord('worker', META_KEY.worker('w'), JSON.stringify(record), {}),
      ]);
    },
    async rotateEpoch(token, previous) {
      const value = { token, previous, clusterId: log.description.clusterId, reason: 'test', atMs: 0 };
      await log.append({ topic: 'meta', partition: 0 }, [
        makeRecord('epoch', META_KEY.epoch(token), JSON.stringify(value), {}),
      ]);
    },
    async events(partition, ...records) {
      return (await log.append({ topic: 'events', partition }, records)).offsets;
    },
    async say(session, stream, payload, options = {}) {
      const { key, partition } = keyOf(session);
      const text = typeof payload === 'string' ? payload : JSON.stringify(payload);
      const [offset = -1] = await backend.events(
        partition,
        sent(key, stream, text, { owner: claims[partition] ?? null, ...options }),
      );
      return offset;
    },
    async recordSession(session, version) {
      const { key, partition, createdMs } = keyOf(session);
      const record = {
        server: 'demo',
        principal: 'p',
        version,
        createdMs,
        initialize: { jsonrpc: '2.0', id: 0, method: 'initialize' },
        initialized: true,
        logLevel: null,
        subscriptions: [],
      };
      await log.append({ topic: 'sessions', partition }, [makeRecord('session', key, JSON.stringify(record), {})]);
    },
    async endSession(session) {
      const { key, partition } = keyOf(session);
      const end = JSON.stringify({ reason: 'idle', atMs: clock.wallMs() });
      await log.append({ topic: 'sessions', partition }, [makeRecord('session.end', sessionEndKey(key), end, {})]);
    },
    async inbound(partition = 0) {
      const records = await backend.read('inbound', partition);
      return records.map((record) => {
        const inbound = readInboundRecord(record);
        if ('unreadable' in inbound) throw new TypeError(inbound.unreadable);
        return inbound;
      });
    },
    async read(topic, partition = 0) {
      const ref = { topic, partition };
      const { start } = await log.bounds(ref);
      return (await log.read(ref, start, { maxBytes: 1 << 30 })).records;
    },
  };
  await backend.rotateEpoch(EPOCH, null);
  return backend;
}

/** The JSON-RPC message of an inbound record. */
export function messageOf({ record }: InboundRecord): unknown {
  const value: unknown = JSON.parse(decodeText(record.value ?? new Uint8Array()));
  const classified = classifyMessage(value);
  if ('fault' in classified) throw new TypeError(classified.fault);
  return value;
}
