/**
 * Notifications to the clients of sessions from any process: a job, a webhook, a queue. They are appended to `inbound`,
 * and the owner of the session puts them on its standalone stream, each name once. SPEC: PRD-*.
 */
import { ackWithin, answerWithin, deadline, hasLogCode, sleep, systemClock } from '@throughline/log';
import type { Clock, Log } from '@throughline/log';
import { classifyMessage, findClientFault, INBOUND_TYPE, isIdempotencyKey, makeRecord } from '@throughline/protocol';
import type { Offset, Partition, RecordInput } from '@throughline/protocol';
import { ProducerError } from './errors.ts';
import { openKnownSessions } from './known-sessions.ts';
import { Room } from './room.ts';

export interface ProducerOptions {
  /** Open, the one that gateways and workers use. It is not closed here. */
  readonly log: Log;
  /** Bytes of messages that are under way; more wait. Default 16 MiB. */
  readonly maxBytes?: number;
  /** Calls that wait for room; more are refused with `BUFFER_FULL`. Default 1000. */
  readonly maxWaiting?: number;
  /** Milliseconds until `append` gives up, waiting for room included: at most 40,000. Default 20,000. */
  readonly timeoutMs?: number;
  /** The maximum life of sessions, as gateways have it. Default 24 h. Milliseconds. */
  readonly maxLifeMs?: number;
  /** A read of the log failed and is tried again. */
  onError?(error: unknown): void;
  /** Default: the system's. It may differ from that of the log by 10 s. */
  readonly clock?: Clock;
}

export interface AppendOptions {
  /**
   * Names the message in its session: 1 to 128 characters of visible ASCII. The client hears one message of a name,
   * however often it is appended within {@link RETRY_WITHIN_MS} of the first try.
   */
  readonly idempotencyKey: string;
  /** When it was tried first, milliseconds since the Unix epoch: for a try that goes on after a restart. Default: now. */
  readonly firstTriedMs?: number;
  /** What happens when the buffer is full: wait for room, or refuse at once with `BUFFER_FULL`. Default `wait`. */
  readonly whenFull?: 'wait' | 'refuse';
}

export interface Produced {
  readonly partition: Partition;
  /** In `inbound`, of the copy that was acknowledged. */
  readonly offset: Offset;
}

export interface Producer {
  /**
   * Appends a notification for the client of a session. Resolves when it is durable: it is said by the owner of the
   * session, as soon as there is one, in the order in which the appends of one session were acknowledged. A session that
   * ends before hears nothing.
   * Errors: `ProducerError`. Attempts that fail, also those of unknown outcome, are repeated until the timeout.
   */
  append(sessionId: string, message: unknown, options: AppendOptions): Promise<Produced>;
  /** The same for many: each has its own outcome, and one does not hold up the others. Each session once. */
  appendMany(
    sessionIds: Iterable<string>,
    message: unknown,
    options: AppendOptions,
  ): Promise<ReadonlyMap<string, Produced | ProducerError>>;
  /** Takes nothing more; resolves when what is under way has ended, after the timeout at the latest. Idempotent. */
  close(): Promise<void>;
}

/** How long after the first try a message may come into the log: owners remember names for a minute. Milliseconds. */
export const RETRY_WITHIN_MS = 50_000;
const MAX_TIMEOUT_MS = 40_000;
const PAUSE_MS = 200;
const MIN_TRY_MS = 20;
const AT_ONCE = 64;
const DAY_MS = 24 * 3600_000;

/** Errors: `TypeError` on wrong options, `UNAVAILABLE`, those of the log. */
export async function openProducer(options: ProducerOptions): Promise<Producer> {
  const { maxBytes = 16 * 1024 * 1024, maxWaiting = 1000, timeoutMs = 20_000, maxLifeMs = DAY_MS } = options;
  for (const [name, value] of Object.entries({ maxBytes, maxWaiting, timeoutMs, maxLifeMs }))
    if (!Number.isSafeInteger(value) || value < 1) throw new TypeError(`${name} must be an integer from 1`);
  if (timeoutMs > MAX_TIMEOUT_MS) throw new TypeError(`timeoutMs must be ${MAX_TIMEOUT_MS} at most`);
  const { clock = systemClock } = options;
  const log = answerWithin(options.log, clock);
  const sessions = await openKnownSessions({ log, clock, maxLifeMs, onError: (error) => options.onError?.(error) });
  const room = new Room(maxBytes, maxWaiting);
  const underWay = new Set<Promise<unknown>>();
  let isClosed = false;

  const append = async (sessionId: string, message: unknown, asked: AppendOptions): Promise<Produced> => {
    const { idempotencyKey, firstTriedMs = clock.wallMs(), whenFull = 'wait' } = asked;
    const json = checkMessage(message);
    if (!isIdempotencyKey(idempotencyKey))
      throw new ProducerError(
        'INVALID_KEY',
        'idempotencyKey must be 1 to 128 characters of visible ASCII, without spaces',
      );
    const untilMs = firstTriedMs + RETRY_WITHIN_MS;
    if (!Number.isSafeInteger(untilMs)) throw new TypeError('firstTriedMs must be a time in whole milliseconds');
    if (isClosed) throw closedError();
    if (clock.wallMs() > untilMs) throw tooLate();
    const limit = deadline(clock, timeoutMs);
    const deadlines = { untilMs, giveUpAt: clock.monoMs() + timeoutMs, signal: limit.signal };
    try {
      const { session, server } = await sessions.find(sessionId, limit.signal);
      const record = makeRecord(INBOUND_TYPE.produced, session.key, json, {
        server,
        idempotencyKey,
        until: String(untilMs),
      });
      const bytes = sizeOf(record);
      if (bytes > log.description.maxRecordBytes)
        throw new ProducerError(
          'TOO_LARGE',
          `the message is larger than a record of the log may be (${log.description.maxRecordBytes} bytes)`,
        );
      if (!(await takeRoom(bytes, whenFull, deadlines)))
        throw new ProducerError('BUFFER_FULL', `${maxBytes} bytes are under way; nothing was appended`);
      try {
        return await appendUntil(record, session.partition, deadlines);
      } finally {
        room.free(bytes);
      }
    } finally {
      limit.dispose();
    }
  };

  const takeRoom = async (
    bytes: number,
    whenFull: 'wait' | 'refuse',
    { giveUpAt, signal }: Deadlines,
  ): Promise<boolean> => {
    try {
      if (!(await room.take(bytes, whenFull === 'wait', signal))) return false;
    } catch {
      return false;
    }
    // Rather told that nothing was appended than tried without the time to hear what came of it.
    if (giveUpAt - clock.monoMs() >= MIN_TRY_MS) return true;
    room.free(bytes);
    return false;
  };

  /** The same record, again and again: owners tell by its name that it is one message. */
  const appendUntil = async (
    record: RecordInput,
    partition: Partition,
    { untilMs, giveUpAt, signal }: Deadlines,
  ): Promise<Produced> => {
    let mayBeThere = false;
    for (;;) {
      try {
        const leftMs = Math.max(1, giveUpAt - clock.monoMs());
        const { offsets, timestampMs } = await ackWithin(
          clock,
          leftMs,
          log.append({ topic: 'inbound', partition }, [record]),
        );
        if (timestampMs > untilMs) throw tooLate();
        return { partition, offset: offsets[0] ?? 0 };
      } catch (error) {
        if (error instanceof ProducerError) throw error;
        if (hasLogCode(error, 'APPEND_UNKNOWN')) mayBeThere = true;
        const reason = hasLogCode(error, 'APPEND_REFUSED') ? error.details.reason : undefined;
        const isFinal = hasLogCode(error, 'CLOSED') || (reason !== undefined && FINAL.has(reason));
        if (!isFinal && (await sleep(clock, PAUSE_MS, signal)) && clock.wallMs() <= untilMs) continue;
        if (mayBeThere)
          throw new ProducerError('UNKNOWN_OUTCOME', 'the log did not say whether it took the message', error);
        if (reason === 'too-large')
          throw new ProducerError('TOO_LARGE', 'the log refuses a message of this size', error);
        throw new ProducerError('UNAVAILABLE', 'the log does not take the message; nothing was appended', error);
      }
    }
  };

  const track = <T>(work: Promise<T>): Promise<T> => {
    underWay.add(work);
    const over = (): void => void underWay.delete(work);
    work.then(over, over);
    return work;
  };

  const appendMany: Producer['appendMany'] = async (sessionIds, message, asked) => {
    const outcomes = new Map<string, Produced | ProducerError>();
    const firstTriedMs = asked.firstTriedMs ?? clock.wallMs();
    const left = new Set(sessionIds).values();
    const work = async (): Promise<void> => {
      for (const sessionId of left) {
        try {
          outcomes.set(sessionId, await track(append(sessionId, message, { ...asked, firstTriedMs })));
        } catch (error) {
          if (!(error instanceof ProducerError)) throw error;
          outcomes.set(sessionId, error);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return outcomes;
  };

  return {
    append: (sessionId, message, asked) => track(append(sessionId, message, asked)),
    appendMany,
    async close() {
      isClosed = true;
      await Promise.allSettled(underWay);
      await sessions.close();
    },
  };
}

interface Deadlines {
  /** By the wall clock. */
  readonly untilMs: number;
  /** By the monotonic one. */
  readonly giveUpAt: number;
  /** Fires at `giveUpAt`. */
  readonly signal: AbortSignal;
}

/** No later try would fare better. */
const FINAL: ReadonlySet<string> = new Set(['too-large', 'closed', 'not-authenticated', 'not-authorized']);

function checkMessage(message: unknown): string {
  const classified = classifyMessage(message);
  if ('fault' in classified) throw new ProducerError('INVALID_MESSAGE', classified.fault);
  if (classified.kind !== 'notification')
    throw new ProducerError(
      'INVALID_MESSAGE',
      'field id: a producer may send notifications only, nobody would take the answer',
    );
  const fault = findClientFault(classified);
  if (fault !== null) throw new ProducerError('INVALID_MESSAGE', fault);
  return JSON.stringify(message);
}

function sizeOf({ key, value, headers }: RecordInput): number {
  const named = headers.reduce((sum, [name, text]) => sum + name.length + text.length, 0);
  return (key?.length ?? 0) + (value?.length ?? 0) + named;
}

function closedError(): ProducerError {
  return new ProducerError('CLOSED', 'the producer was closed');
}

function tooLate(): ProducerError {
  return new ProducerError('TOO_LATE', `more than ${RETRY_WITHIN_MS} ms after the first try: the message is not said`);
}
