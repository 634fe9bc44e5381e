/** The way to the worker: gathers what is said in one turn of the event loop, settles what comes back, and ends in bounded time. */
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import type { Offset, RecordInput } from '@throughline/protocol';
import type { Clock } from '../clock.ts';
import { LogError } from '../errors.ts';
import { itemAt } from '../item-at.ts';
import type { Appended } from '../port.ts';
import { SENT } from './messages.ts';
import type { Call, FromWorker, ToWorker, WorkerEvent, WorkerSettings } from './messages.ts';
import { framedBytes, writeRecord } from './record-codec.ts';
import { workerFile } from './worker-file.ts';

const CLOSE_DEADLINE_MS = 5000;
/** A file that is locked for long is refused sooner; a disk that does not answer at all never is. */
const OPEN_DEADLINE_MS = 30_000;

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
export type CallBody = DistributiveOmit<Call, 'id'>;

/** The bytes of an append as they were sent, for readers in this process. */
export interface SentBytes {
  readonly buffer: Buffer;
  readonly at: number;
}

interface PendingAppend {
  readonly id: number;
  readonly slot: number;
  /** Empty once they were sent: the bytes are the worker's then. */
  records: readonly RecordInput[];
  readonly count: number;
  readonly bytes: number;
  sent: SentBytes | null;
  resolve(appended: Appended): void;
  reject(error: LogError): void;
}

interface PendingCall {
  resolve(event: WorkerEvent): void;
  reject(error: LogError): void;
}

export interface LinkListener {
  /** True if {@link onAppended} will want the bytes. */
  wantsBytes(slot: number): boolean;
  onAppended(slot: number, first: Offset, timestampMs: number, count: number, sent: SentBytes | null): void;
  /** After a batch of {@link onAppended}. */
  onAppends(): void;
  onEvent(event: WorkerEvent): void;
  /** The worker is gone: nothing will come any more. */
  onBroken(error: LogError): void;
}

export interface WorkerLink {
  append(slot: number, records: readonly RecordInput[]): Promise<Appended>;
  call(body: CallBody): Promise<WorkerEvent>;
  close(): Promise<void>;
  /** Ends the worker as a kill would. */
  terminate(): Promise<void>;
}

/** `signals` of the settings are made here. Errors: those of opening; `LOG_UNAVAILABLE` after 30 s. SPEC: WAIT-SQLITE. */
export async function startWorkerLink(
  settings: Omit<WorkerSettings, 'signals'>,
  options: {
    readonly clock: Clock;
    /** Bytes of appends that may wait for their acks; more are refused. One append is always taken. */
    readonly maxQueuedBytes: number;
    /** The code of the thread. Default: the one of this package. */
    readonly entry?: URL;
  },
  listener: LinkListener,
): Promise<{ link: WorkerLink; clusterId: string; partitions: number }> {
  const { clock } = options;
  const shared = new SharedArrayBuffer(4);
  const signals = new Int32Array(shared);
  const { port1: port, port2: workerPort } = new MessageChannel();
  const worker = new Worker(options.entry ?? workerFile(), {
    name: 'throughline-log',
    workerData: { settings: { ...settings, signals: shared } satisfies WorkerSettings, port: workerPort },
    transferList: [workerPort],
  });
  const opened = Promise.withResolvers<{ clusterId: string; partitions: number }>();
  const exited = new Promise<void>((resolve) => {
    worker.once('exit', () => {
      resolve();
    });
  });
  const pendingAppends = new Map<number, PendingAppend>();
  const pendingCalls = new Map<number, PendingCall>([
    [
      0,
      {
        resolve: () => undefined,
        reject: (error) => {
          opened.reject(error);
        },
      },
    ],
  ]);
  let unsent: PendingAppend[] = [];
  let calls: Call[] = [];
  let queuedBytes = 0;
  let lastId = 0;
  let isFlushing = false;
  let broken: LogError | null = null;

  const settleAppend = (id: number): PendingAppend | null => {
    const pending = pendingAppends.get(id);
    if (pending === undefined) return null;
    pendingAppends.delete(id);
    queuedBytes -= pending.bytes;
    return pending;
  };

  const handle = ({ acks, events }: FromWorker): void => {
    for (let at = 0; at < acks.length; at += 3) {
      const first = itemAt(acks, at + 1);
      const timestampMs = itemAt(acks, at + 2);
      const pending = settleAppend(itemAt(acks, at));
      if (pending === null) continue;
      listener.onAppended(pending.slot, first, timestampMs, pending.count, pending.sent);
      pending.resolve({ offsets: Array.from({ length: pending.count }, (_, index) => first + index), timestampMs });
    }
    if (acks.length > 0) listener.onAppends();
    for (const event of events) handleEvent(event);
    keepAlive(port, pendingAppends.size + pendingCalls.size > 0);
  };

  const handleEvent = (event: WorkerEvent): void => {
    switch (event.kind) {
      case 'opened':
        pendingCalls.delete(0);
        opened.resolve(event);
        return;
      case 'failed':
        for (const id of event.ids) {
          const { code, message, details } = event.fault;
          const pending = settleAppend(id) ?? pendingCalls.get(id);
          pendingCalls.delete(id);
          pending?.reject(new LogError(code, message, details));
        }
        return;
      case 'push':
      case 'started':
      case 'assigned':
        listener.onEvent(event);
        return;
      case 'batch':
      case 'bounds':
      case 'committed':
      case 'done': {
        listener.onEvent(event);
        const pending = pendingCalls.get(event.id);
        pendingCalls.delete(event.id);
        pending?.resolve(event);
        return;
      }
    }
  };

  const onGone = (cause?: unknown): void => {
    if (broken !== null) return;
    // Its end can be known before its last words are: acks and refusals that it sent count.
    for (;;) {
      const last = receiveMessageOnPort(port) as { readonly message: FromWorker } | undefined;
      if (last === undefined) break;
      handle(last.message);
    }
    broken = new LogError('LOG_UNAVAILABLE', 'the thread that keeps the log has stopped', {}, cause);
    for (const { id } of unsent) settleAppend(id)?.reject(notSent());
    for (const id of [...pendingAppends.keys()])
      settleAppend(id)?.reject(new LogError('APPEND_UNKNOWN', 'the thread that keeps the log has stopped', {}, cause));
    for (const pending of pendingCalls.values()) pending.reject(broken);
    pendingCalls.clear();
    opened.reject(broken);
    listener.onBroken(broken);
    port.close();
  };

  const flush = (): void => {
    isFlushing = false;
    if (broken !== null) return;
    const queued = unsent;
    const said = calls;
    unsent = [];
    calls = [];
    if (queued.length === 0 && said.length === 0) return;
    const { appends, bytes } = encode(queued);
    const message: ToWorker = { appends, bytes, wallMs: clock.wallMs(), calls: said };
    port.postMessage(message, bytes === null ? [] : [bytes.buffer as ArrayBuffer]);
    Atomics.add(signals, SENT, 1);
    Atomics.notify(signals, SENT);
  };

  const encode = (queued: readonly PendingAppend[]): { appends: number[]; bytes: Uint8Array | null } => {
    if (queued.length === 0) return { appends: [], bytes: null };
    const appends: number[] = [];
    const bytes = Buffer.allocUnsafeSlow(queued.reduce((sum, pending) => sum + pending.bytes, 0));
    // The sent memory goes to the worker; who reads along in this process needs a copy.
    const kept = queued.some((pending) => listener.wantsBytes(pending.slot))
      ? Buffer.allocUnsafeSlow(bytes.length)
      : null;
    let at = 0;
    for (const pending of queued) {
      const start = at;
      for (const record of pending.records) at = writeRecord(bytes, at, record);
      appends.push(pending.id, pending.slot, start, pending.count, at - start);
      pending.records = [];
      if (kept !== null) pending.sent = { buffer: kept, at: start };
    }
    kept?.set(bytes);
    return { appends, bytes };
  };

  const scheduleFlush = (): void => {
    if (isFlushing) return;
    isFlushing = true;
    keepAlive(port, true);
    // After the I/O callbacks of this turn: what they append goes in one message, and one commit.
    setImmediate(flush);
  };

  const call = (body: CallBody): Promise<WorkerEvent> =>
    new Promise((resolve, reject) => {
      if (broken !== null) {
        reject(broken);
        return;
      }
      const id = ++lastId;
      pendingCalls.set(id, { resolve, reject });
      calls.push({ ...body, id });
      scheduleFlush();
    });

  worker.once('error', onGone);
  worker.once('exit', () => {
    onGone();
  });
  port.on('message', handle);
  worker.unref();
  const cancelOpening = clock.setTimer(OPEN_DEADLINE_MS, () => {
    opened.reject(new LogError('LOG_UNAVAILABLE', `the log was not opened within ${OPEN_DEADLINE_MS / 1000} s`));
    void worker.terminate();
  });
  const { clusterId, partitions } = await opened.promise.finally(cancelOpening);
  return {
    clusterId,
    partitions,
    link: {
      call,
      append: (slot, records) =>
        new Promise((resolve, reject) => {
          const bytes = records.reduce((sum, record) => sum + framedBytes(record), 0);
          if (broken !== null) {
            reject(notSent());
            return;
          }
          if (queuedBytes > 0 && queuedBytes + bytes > options.maxQueuedBytes) {
            reject(new LogError('APPEND_REFUSED', 'too many appends are waiting', { reason: 'other' }));
            return;
          }
          const id = ++lastId;
          queuedBytes += bytes;
          const pending = { id, slot, records, count: records.length, bytes, sent: null, resolve, reject };
          pendingAppends.set(id, pending);
          unsent.push(pending);
          scheduleFlush();
        }),
      async close() {
        for (const { id } of unsent) settleAppend(id)?.reject(closedBeforeSent());
        unsent = [];
        let cancel = (): void => undefined;
        const late = new Promise<void>((resolve) => {
          cancel = clock.setTimer(CLOSE_DEADLINE_MS, resolve);
        });
        await Promise.race([
          call({ kind: 'close' }).then(
            () => exited,
            () => undefined,
          ),
          late,
        ]);
        cancel();
        await worker.terminate();
        onGone();
      },
      async terminate() {
        await worker.terminate();
        onGone();
      },
    },
  };
}

/** A process ends with nothing to wait for, but not before what it waits for. */
function keepAlive(port: MessagePort, isNeeded: boolean): void {
  if (isNeeded) port.ref();
  else port.unref();
}

function notSent(): LogError {
  return new LogError('APPEND_REFUSED', 'the thread that keeps the log has stopped', { reason: 'other' });
}

function closedBeforeSent(): LogError {
  return new LogError('APPEND_REFUSED', 'the log was closed before the append was written', { reason: 'closed' });
}
