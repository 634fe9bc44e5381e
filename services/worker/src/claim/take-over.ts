/**
 * What a new owner does before it takes new work: reads `inbound` from the newest checkpoint, settles or dispatches
 * what a former owner left, and ends sessions that it may not rebuild. SPEC: WRK-TAKEOVER, WRK-EPOCH.
 */
import { LogError, readRange } from '@throughline/log';
import { classifyText, decodeText } from '@throughline/protocol';
import type { LogRecord, Offset } from '@throughline/protocol';
import type { SessionDirectory } from '@throughline/tail';
import type { WorkerContext } from '../context.ts';
import { idKey } from '../consume/open-call.ts';
import type { Tenure } from '../consume/tenure.ts';
import { answerKey, cancelKey } from '../consume/tenure-parts.ts';
import { parseWireRequestId, WIRE_ID_PREFIX } from '../settle/server-request-ids.ts';
import type { EventsWatch } from './events-watch.ts';

export interface TakeOverOptions {
  readonly context: WorkerContext;
  readonly partition: number;
  readonly epoch: string;
  readonly watch: EventsWatch;
  readonly directory: SessionDirectory;
  readonly tenure: Tenure;
  readonly signal: AbortSignal;
}

/** Errors: those of `Log.read` and `Log.bounds`; `LOG_UNAVAILABLE` also if the log ends before what was taken in. */
export async function takeOver(options: TakeOverOptions): Promise<void> {
  const { context, partition, epoch, watch, directory, tenure, signal } = options;
  const { log, logger, meta, guard } = context;
  const inbound = { topic: 'inbound', partition } as const;
  const checkpoint = watch.since().checkpoint();
  const { end } = await log.bounds(inbound);
  if (checkpoint !== null && end < checkpoint.inbound) {
    guard.suspect(epoch, inbound, checkpoint.inbound);
    throw new LogError('LOG_UNAVAILABLE', `inbound ends at ${end}, and was read up to ${checkpoint.inbound}`);
  }
  guard.noteRead(epoch, inbound, null, end);
  await meta.sync(signal);
  if (checkpoint === null && meta.hint(epoch, partition) === null) {
    await beginEpoch(options, end);
    return;
  }
  const onRead = (last: LogRecord | null, readEnd: Offset): void => {
    guard.noteRead(epoch, inbound, last, readEnd);
  };
  const range = { log, of: inbound, from: checkpoint?.from ?? 0, below: end, signal, onRead };
  // Cancels and answers lie behind their requests: all of them are known before the first request is decided.
  const cancels = new Map<string, Offset>();
  const answers = new Map<string, Offset>();
  let newestMs = 0;
  for await (const record of readRange(range)) {
    newestMs = record.timestampMs;
    const reply = replyOf(record);
    if (reply === null) continue;
    // The newest cancel counts; of two answers the first was heard.
    if (reply.cancels) cancels.set(reply.key, record.offset);
    else if (!answers.has(reply.key)) answers.set(reply.key, record.offset);
  }
  const open = new Set(checkpoint?.open.map(({ at }) => at));
  const knownFrom = checkpoint === null ? watch.since().knownFrom() : null;
  tenure.startAt(checkpoint?.inbound ?? 0);
  tenure.life.meet(directory.living(partition), watch.since().endedSessions());
  tenure.inheritLost(checkpoint?.lost ?? []);
  let mayRepeat = false;
  const onEvicted = (start: Offset, evictedFrom: Offset): void => {
    logger.error('client messages were evicted before they were served', { partition, from: evictedFrom, to: start });
    for (const at of open) if (at >= evictedFrom && at < start) tenure.lose(at, at + 1);
    tenure.lose(Math.max(evictedFrom, checkpoint?.inbound ?? 0), start);
    tenure.startAt(start);
    mayRepeat = true;
  };
  const takenIn = checkpoint?.inbound ?? 0;
  for await (const record of readRange({ ...range, onEvicted })) {
    const isPast = record.offset < takenIn && !open.has(record.offset);
    tenure.takeIn(record, { kind: 'takeover', isPast, takenIn, cancels, answers, knownFrom, mayRepeat, newestMs });
    await tenure.room(signal);
    if (signal.aborted) return;
  }
  tenure.recall();
  await tenure.life.endTerminating();
}

/**
 * Nobody owned the partition in this epoch, so no session of it can lie there: what lies in `inbound` belongs to a
 * history that has ended, and must not be run again; its sessions are at their end.
 */
async function beginEpoch({ partition, directory, tenure, context }: TakeOverOptions, end: Offset): Promise<void> {
  const living = directory.living(partition);
  if (living.length > 0) context.logger.warn('sessions of a former epoch end', { partition, sessions: living.length });
  tenure.startAt(end);
  await Promise.all(living.map(([key]) => tenure.life.end(key, 'epoch-ended')));
}

const CANCELLED = 'notifications/cancelled';

interface Reply {
  /** It cancels a request of the client; else it answers a question of a server. */
  readonly cancels: boolean;
  readonly key: string;
}

/** What a client's message says to something that came before it; `null`: nothing. */
function replyOf(record: LogRecord): Reply | null {
  if (record.key === null || record.value === null || !mayReply(record.value)) return null;
  const classified = classifyText(decodeText(record.value));
  if (!('kind' in classified) || classified.kind === 'request') return null;
  const session = decodeText(record.key);
  if (classified.kind === 'response') {
    const { id } = classified.message;
    return id === null || parseWireRequestId(id) === null
      ? null
      : { cancels: false, key: answerKey(session, idKey(id)) };
  }
  if (classified.message.method !== CANCELLED) return null;
  const requestId = classified.message.params?.['requestId'];
  return typeof requestId === 'string' || typeof requestId === 'number'
    ? { cancels: true, key: cancelKey(session, idKey(requestId)) }
    : null;
}

/** Most records are requests: they are not parsed to find that out. */
function mayReply({ buffer, byteOffset, byteLength }: Uint8Array): boolean {
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  return bytes.includes(CANCELLED) || !bytes.includes('"method"') || bytes.includes(`"${WIRE_ID_PREFIX}`);
}
