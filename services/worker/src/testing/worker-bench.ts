/** Workers on one memory store under virtual time, with what a gateway would append and read. */
import { ClaimHistory } from '@throughline/history';
import { createMemoryStore, openMemoryLog } from '@throughline/log/memory';
import type { MemoryLog, MemoryStore, MemoryStoreOptions } from '@throughline/log/memory';
import type { Log } from '@throughline/log';
import {
  decodeText,
  formatBatchIds,
  formatTarget,
  INBOUND_TYPE,
  makeRecord,
  readEventRecord,
  readSessionEnd,
  readSessionRecord,
  STANDALONE,
} from '@throughline/protocol';
import type { EventRecord, JsonRpcId, JsonRpcMessage, LogRecord, Offset, SessionRecord } from '@throughline/protocol';
import { Meta } from '@throughline/tail';
import { noMetrics, silentLogger } from '@throughline/telemetry';
import type { Logger, Metrics } from '@throughline/telemetry';
import { createVirtualTime } from '@throughline/testkit';
import type { VirtualTime } from '@throughline/testkit';
import { WorkerConfigSchema } from '../config.ts';
import type { WorkerConfig } from '../config.ts';
import type { ToolEffects } from '../consume/tool-catalog.ts';
import { startWorker } from '../start-worker.ts';
import type { Worker } from '../start-worker.ts';
import { createScriptedHost, SCRIPTED_TOOLS } from './scripted-host.ts';
import type { ScriptedHost, ScriptedHostOptions, ToolRun } from './scripted-host.ts';

export const EVENTS = { topic: 'events', partition: 0 } as const;
export const INBOUND = { topic: 'inbound', partition: 0 } as const;
export const SESSIONS = { topic: 'sessions', partition: 0 } as const;
export const META = { topic: 'meta', partition: 0 } as const;
export const DEAD_LETTER = { topic: 'dead-letter', partition: 0 } as const;

export interface BenchWorker {
  readonly process: string;
  readonly worker: Worker;
  readonly log: MemoryLog;
  readonly host: ScriptedHost;
  /** As kill -9: nothing is drained, and its timers never run again. */
  crash(): void;
}

export interface WorkerChoice {
  readonly config?: Readonly<Partial<Omit<WorkerConfig, 'servers'>>>;
  readonly onOwnerLoss?: 'restore' | 'terminate';
  readonly maxSessions?: number;
  readonly idleTtl?: number;
  readonly host?: Partial<ScriptedHostOptions>;
  /** What stands between the worker and its log. */
  readonly wrap?: (log: MemoryLog) => Log;
  readonly metrics?: Metrics;
  readonly logger?: Logger;
  readonly server?: string;
  /** Milliseconds that its wall clock is ahead. */
  readonly wallSkewMs?: number;
}

/** Of a client that can be asked whatever MCP knows. */
const ASKS_ANYTHING = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };

export interface PostOptions {
  readonly version?: string;
  /** What the client declares in `initialize`; default: all that a server may ask of it. */
  readonly capabilities?: Readonly<Record<string, unknown>>;
  readonly batch?: string;
  readonly after?: Offset | null;
  readonly server?: string;
  readonly principal?: string;
}

/** One stream as any reader derives it. */
export interface StreamSeen {
  readonly messages: JsonRpcMessage[];
  ends: number;
  /** Messages after its end. */
  late: number;
}

export interface Bench {
  readonly time: VirtualTime;
  readonly store: MemoryStore;
  readonly log: MemoryLog;
  readonly runs: ToolRun[];
  start(choice?: WorkerChoice): Promise<BenchWorker>;
  /** Without waiting that it owns anything. */
  starting(choice?: WorkerChoice): {
    readonly process: string;
    readonly log: MemoryLog;
    readonly host: ScriptedHost;
    readonly started: Promise<Worker>;
  };
  /** Appends what a client posts; the offsets of the messages. */
  post(key: string, messages: object | readonly object[], options?: PostOptions): Promise<readonly Offset[]>;
  end(key: string): Promise<void>;
  attach(key: string, stream?: string): Promise<void>;
  /** `initialize` and `initialized`, answered. Rejects with the text of the error that the client got instead. */
  open(key: string, options?: PostOptions): Promise<void>;
  /** A call's offset. */
  call(key: string, id: number, name: string, args?: object, options?: PostOptions): Promise<Offset>;
  /** Lets time pass until the stream has ended, and gives it. */
  ended(at: Offset, limitMs?: number): Promise<StreamSeen>;
  /** Lets time pass until `isDone`, which is asked after every event. */
  until(isDone: () => boolean, limitMs?: number): Promise<void>;
  records(ref: {
    topic: 'events' | 'inbound' | 'sessions' | 'meta' | 'dead-letter';
    partition: number;
  }): readonly LogRecord[];
  accepted(): readonly EventRecord[];
  stream(label: string): StreamSeen;
  session(key: string): { readonly record: SessionRecord | null; readonly endReason: string | null };
  epoch(): string;
  dispose(): Promise<void>;
}

const call = (id: number, name: string, args: object): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { progressToken: id } },
});

/** The stream that a record ends. */
function endOf(body: EventRecord['body']): string | null {
  if (body.type === 'ended' || (body.type === 'message' && body.end)) return formatTarget(body.stream);
  return null;
}

export async function openBench(seed: number, storeOptions: Partial<MemoryStoreOptions> = {}): Promise<Bench> {
  const time = createVirtualTime({ seed });
  const store = createMemoryStore({ clock: time.clock('store'), partitions: 1, clusterId: 'bench', ...storeOptions });
  const log = openMemoryLog(store, { clock: time.clock('client') });
  const meta = new Meta({ log, clock: time.clock('client') });
  await time.run(meta.ensureEpoch(time.random));
  const runs: ToolRun[] = [];
  const living = new Set<BenchWorker>();
  let count = 0;

  const records: Bench['records'] = ({ topic, partition }) => {
    const held = store.partition({ topic, partition });
    const { start } = held.bounds();
    return held.read(start, Number.MAX_SAFE_INTEGER).records;
  };
  let cached: { readonly name: string; readonly events: readonly EventRecord[] } = { name: '', events: [] };
  const accepted = (): readonly EventRecord[] => {
    const { start, end } = store.partition(EVENTS).bounds();
    const name = `${meta.epoch() ?? ''} ${start} ${end}`;
    if (cached.name !== name) cached = { name, events: foldAccepted() };
    return cached.events;
  };
  const foldAccepted = (): readonly EventRecord[] => {
    const epoch = meta.epoch() ?? '';
    // What was evicted is known from the newest hint.
    const hint = store.partition(EVENTS).bounds().start > 0 ? meta.hint(epoch, 0) : null;
    const claims = new ClaimHistory(epoch, hint?.claims ?? [], hint?.worker ?? '');
    return records(EVENTS)
      .map(readEventRecord)
      .filter((event): event is EventRecord => !('unreadable' in event) && claims.fold(event) === 'accepted');
  };
  const stream = (label: string): StreamSeen => {
    const seen: StreamSeen = { messages: [], ends: 0, late: 0 };
    for (const { body, record } of accepted()) {
      if (body.type === 'ended' && formatTarget(body.stream) === label) seen.ends++;
      if (body.type !== 'message' || formatTarget(body.stream) !== label) continue;
      if (seen.ends > 0) seen.late++;
      seen.messages.push(JSON.parse(decodeText(record.value!)) as JsonRpcMessage);
      if (body.end) seen.ends++;
    }
    return seen;
  };

  const starting: Bench['starting'] = (choice = {}) => {
    const process = `worker-${++count}`;
    const clock = time.clock(process, { wallSkewMs: choice.wallSkewMs ?? 0 });
    const own = openMemoryLog(store, { clock });
    const host = createScriptedHost({ clock, worker: process, runs, ...choice.host });
    const name = choice.server ?? 'demo';
    const config = WorkerConfigSchema.parse({
      ...choice.config,
      servers: {
        [name]: {
          module: 'scripted',
          onOwnerLoss: choice.onOwnerLoss ?? 'restore',
          ...(choice.maxSessions === undefined ? {} : { maxSessions: choice.maxSessions }),
          ...(choice.idleTtl === undefined ? {} : { idleTtl: choice.idleTtl }),
        },
      },
    });
    const tools = new Map<string, ToolEffects>(
      Object.entries(SCRIPTED_TOOLS).map(([tool, hints]) => [
        tool,
        { readOnly: hints['readOnlyHint'] === true, idempotent: hints['idempotentHint'] === true },
      ]),
    );
    const started = startWorker(config, {
      log: choice.wrap?.(own) ?? own,
      clock,
      random: time.random,
      logger: choice.logger ?? silentLogger,
      metrics: choice.metrics ?? noMetrics,
      hosts: new Map([[name, host]]),
      tools: new Map([[name, tools]]),
    });
    return { process, log: own, host, started };
  };

  const bench: Bench = {
    time,
    store,
    log,
    runs,
    records,
    accepted,
    stream,
    starting,
    epoch: () => meta.epoch() ?? '',
    async start(choice) {
      const { process, log: own, host, started } = starting(choice);
      const worker = await time.run(started);
      const bench: BenchWorker = {
        process,
        worker,
        log: own,
        host,
        crash() {
          living.delete(bench);
          time.kill(process);
          own.crash();
        },
      };
      living.add(bench);
      return bench;
    },
    async post(key, messages, { version = '2025-11-25', batch, after, server = 'demo', principal = 'p' } = {}) {
      const { end } = await log.bounds(EVENTS);
      const list = Array.isArray(messages) ? (messages as readonly object[]) : [messages];
      const input = list.map((message, index) =>
        makeRecord(INBOUND_TYPE.message, key, JSON.stringify(message), {
          server,
          principal,
          protocolVersion: version,
          batch: batch ?? (Array.isArray(messages) ? `${index}/${list.length}` : null),
          batchIds: Array.isArray(messages) ? formatBatchIds(list.map(requestIdOf)) : null,
          after: after === undefined ? String(end) : after === null ? null : String(after),
        }),
      );
      return (await log.append(INBOUND, input)).offsets;
    },
    async end(key) {
      const value = JSON.stringify({ reason: 'deleted' });
      await log.append(INBOUND, [makeRecord(INBOUND_TYPE.sessionEnd, key, value, { server: 'demo' })]);
    },
    async attach(key, label = STANDALONE) {
      await log.append(EVENTS, [
        makeRecord('stream.attached', key, null, { stream: label, attachment: `a${time.random.below(1e9)}` }),
      ]);
    },
    async open(key, options = {}) {
      const { version: protocolVersion = '2025-11-25', capabilities = ASKS_ANYTHING } = options;
      // As a gateway does: sessions begin where an owner is alive.
      await bench.until(() => meta.livePartitions(meta.epoch() ?? '', 60_000).length > 0);
      const params = { protocolVersion, capabilities, clientInfo: { name: 'bench', version: '1' } };
      const [at = -1] = await bench.post(key, { jsonrpc: '2.0', id: 0, method: 'initialize', params }, options);
      const [answer] = (await bench.ended(at)).messages;
      if (answer !== undefined && 'error' in answer) throw new Error(answer.error?.message);
      await bench.post(key, { jsonrpc: '2.0', method: 'notifications/initialized' }, options);
      await bench.until(() => bench.session(key).record?.initialized === true);
    },
    async call(key, id, name, args = {}, options) {
      const [at = -1] = await bench.post(key, call(id, name, args), options);
      return at;
    },
    async ended(at, limitMs = 120_000) {
      const label = `r${at}`;
      await bench.until(() => accepted().some(({ body }) => endOf(body) === label), limitMs);
      return stream(label);
    },
    async until(isDone, limitMs = 120_000) {
      await time.runUntil(isDone, limitMs);
    },
    session(key) {
      let record: SessionRecord | null = null;
      let endReason: string | null = null;
      for (const each of records(SESSIONS)) {
        const name = decodeText(each.key!);
        if (name === key) record = readSessionRecord(each);
        if (name === `${key}/end`) endReason = readSessionEnd(each)?.reason ?? null;
      }
      return { record, endReason };
    },
    async dispose() {
      for (const worker of [...living]) worker.crash();
      log.crash();
      await time.settle();
    },
  };
  return bench;
}

function requestIdOf(message: object): JsonRpcId | null {
  return 'id' in message && 'method' in message ? (message.id as JsonRpcId) : null;
}
