/** Reads partitions by offset, without a group: nothing but the caller moves a position. */
import type { Offset } from '@throughline/protocol';
import { sleep } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { LogError } from '../errors.ts';
import { outOfRange } from '../out-of-range.ts';
import type { Bounds, ReadBatch } from '../port.ts';
import type { Address } from './address.ts';
import type { ClusterMap } from './cluster-map.ts';
import { brokerFailure, isPassing, toLogError } from './kafka-failure.ts';
import type { Lane, LanePool } from './lanes.ts';
import type { ReadSources } from './read-sources.ts';
import { KAFKA_ERRORS } from './wire/call.ts';
import type { WireCall } from './wire/call.ts';
import { decodeBatches } from './wire/record-batch.ts';
import { EARLIEST, fetchCall, LATEST, listOffsetCall } from './wire/records.ts';

export interface ReaderContext {
  readonly clock: Clock;
  readonly map: ClusterMap;
  readonly sources: ReadSources;
  /** A lane a waiting read: its poll holds up nobody. */
  readonly tails: LanePool<Lane>;
  /** Few lanes for reads and look-ups that do not wait. */
  readonly lookups: LanePool<Lane>;
  readonly readTimeoutMs: number;
  /** Fires when the log is closed. */
  readonly closing: AbortSignal;
}

export interface ReadRequest {
  readonly topic: string;
  readonly partition: number;
  readonly position: Offset;
  readonly maxBytes: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

/** An aborted poll keeps its lane for this long at most. */
const LONGEST_POLL_MS = 500;
const ANSWER_MS = 5000;
/** A reader that waits and is refused for good is told after this at the latest. */
const REFUSED_MS = 2000;
/** A quota that leaves a read without an answer for longer is no use. */
const LONGEST_QUOTA_MS = 60_000;
const RETRY_MS = { first: 50, most: 500 } as const;
/** Asked for beyond `maxBytes`, for what frames records. */
const FRAMING_BYTES = 16 * 1024;
const MOST_FETCH_BYTES = 64 * 1024 * 1024;

/**
 * A reader that waits is refused when its wait is over, not at once: whoever follows tries again.
 * Errors: `OFFSET_OUT_OF_RANGE`, `ABORTED`, `LOG_UNAVAILABLE`, `LOG_INCOMPATIBLE`, `NOT_AUTHENTICATED`, `NOT_AUTHORIZED`,
 * `CLOSED`.
 */
export async function readPartition(context: ReaderContext, request: ReadRequest): Promise<ReadBatch> {
  const { clock, map, sources } = context;
  const { topic, partition, maxBytes } = request;
  const untilMs = clock.monoMs() + request.waitMs;
  const patience = createPatience(context, request.signal, context.readTimeoutMs);
  const quotaPatience = createPatience(context, request.signal, Math.max(context.readTimeoutMs, LONGEST_QUOTA_MS));
  let at = request.position;
  let fetchBytes = Math.min(maxBytes + FRAMING_BYTES, MOST_FETCH_BYTES);
  for (;;) {
    const leftMs = Math.max(0, untilMs - clock.monoMs());
    const isWaiting = request.waitMs > 0 && leftMs >= 1;
    const maxWaitMs = isWaiting ? Math.min(LONGEST_POLL_MS, Math.ceil(leftMs)) : 0;
    try {
      const call = fetchCall(topic, partition, at, { maxWaitMs, maxBytes: fetchBytes });
      const lanes = isWaiting ? context.tails : context.lookups;
      const { answer: fetched, address } = await callLeader(context, lanes, request, call, maxWaitMs);
      if (fetched.error === KAFKA_ERRORS.OFFSET_OUT_OF_RANGE) {
        const bounds = await findBounds(context, request);
        const refusal = outOfRange(at, bounds);
        if (refusal !== null) throw refusal;
        // The ends moved between the two answers, or a new leader has not caught up yet.
        sources.noteFailure(topic, partition);
        await patience.wait(brokerFailure('Fetch', fetched.error));
        continue;
      }
      if (fetched.error === KAFKA_ERRORS.THROTTLING_QUOTA_EXCEEDED) {
        // No answer, and no failure: the next request waits for as long as the broker asked.
        await quotaPatience.wait(brokerFailure('Fetch', fetched.error));
        continue;
      }
      if (fetched.error !== 0)
        throw brokerFailure('Fetch', fetched.error, { resource: 'topic', name: topic, operation: 'Read' });
      patience.reset();
      quotaPatience.reset();
      const { records, next } = decodeBatches(fetched.batches, at, maxBytes);
      const bounds = {
        start: Math.max(0, fetched.logStart),
        // A leader that has just taken over may not know yet what its predecessor confirmed.
        end: Math.max(fetched.highWatermark, next),
      };
      const seen = { source: sources.nameOf(address, topic, partition), madeAnew: sources.madeAnew(topic) };
      if (records.length > 0) return { records, next, bounds, ...seen };
      const isPartial = next === at && fetched.batches.length > 0;
      if (isPartial && fetchBytes < MOST_FETCH_BYTES) fetchBytes = Math.min(fetchBytes * 4, MOST_FETCH_BYTES);
      else if (next === at && !isWaiting) return { records, next, bounds, ...seen };
      // Nothing but holes and control records so far: they are no news, and the position moves on.
      at = next;
    } catch (error) {
      if (error instanceof LogError) throw error;
      if (!isPassing(error)) {
        const signals = [context.closing, request.signal].filter((signal) => signal !== undefined);
        const restMs = Math.min(untilMs - clock.monoMs(), REFUSED_MS);
        if (restMs > 0 && !(await sleep(clock, restMs, AbortSignal.any(signals)))) throw endedError(context);
        throw translate(error, context);
      }
      map.forget(topic);
      sources.noteFailure(topic, partition);
      await patience.wait(error);
    }
  }
}

/** Both ends as the leader knows them. Rejects with `LogError`. */
export async function findBounds(
  context: ReaderContext,
  of: { readonly topic: string; readonly partition: number; readonly signal?: AbortSignal | undefined },
): Promise<Bounds> {
  const patience = createPatience(context, of.signal, context.readTimeoutMs);
  for (;;) {
    try {
      const ask = async (which: typeof EARLIEST | typeof LATEST): Promise<Offset> => {
        const call = listOffsetCall(of.topic, of.partition, which);
        const { answer } = await callLeader(context, context.lookups, { ...of, signal: of.signal }, call, 0);
        const { error, offset } = answer;
        if (error !== 0)
          throw brokerFailure('ListOffsets', error, { resource: 'topic', name: of.topic, operation: 'Describe' });
        return offset;
      };
      // The end first: eviction in between must not make a start above the end.
      const end = await ask(LATEST);
      const start = await ask(EARLIEST);
      return { start, end: Math.max(start, end) };
    } catch (error) {
      if (error instanceof LogError) throw error;
      if (!isPassing(error)) throw translate(error, context);
      context.map.forget(of.topic);
      await patience.wait(error);
    }
  }
}

/** Races the answer with the caller's signal and the end of the log; the lane is used again when its answer is there. */
async function callLeader<T>(
  context: ReaderContext,
  pool: LanePool<Lane>,
  to: { readonly topic: string; readonly partition: number; readonly signal: AbortSignal | undefined },
  call: WireCall<T>,
  waitMs: number,
): Promise<{ readonly answer: T; readonly address: Address }> {
  const work = async (): Promise<{ readonly answer: T; readonly address: Address }> => {
    const address = await context.map.leaderOf(to.topic, to.partition);
    const lane = await pool.take(address);
    try {
      const answer = await lane.to(address).call(call, waitMs + ANSWER_MS);
      pool.giveBack(lane);
      return { answer, address };
    } catch (error) {
      pool.discard(lane);
      throw error;
    }
  };
  return await raceSignals(work(), [to.signal, context.closing], () => endedError(context));
}

function raceSignals<T>(
  work: Promise<T>,
  signals: readonly (AbortSignal | undefined)[],
  ended: () => LogError,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(ended());
    };
    for (const signal of signals) {
      if (signal?.aborted) onAbort();
      signal?.addEventListener('abort', onAbort, { once: true });
    }
    work
      .finally(() => {
        for (const signal of signals) signal?.removeEventListener('abort', onAbort);
      })
      .then(resolve, reject);
  });
}

/** Tries again, ever more slowly, until the cluster has not answered for `longestMs`. */
function createPatience(
  context: ReaderContext,
  signal: AbortSignal | undefined,
  longestMs: number,
): { wait(error: unknown): Promise<void>; reset(): void } {
  const { clock, closing } = context;
  let sinceMs: number | null = null;
  let pauseMs: number = RETRY_MS.first;
  return {
    async wait(error) {
      sinceMs ??= clock.monoMs();
      if (clock.monoMs() - sinceMs >= longestMs) throw translate(error, context);
      const both = signal === undefined ? closing : AbortSignal.any([closing, signal]);
      if (!(await sleep(clock, pauseMs, both))) throw endedError(context);
      pauseMs = Math.min(pauseMs * 2, RETRY_MS.most);
    },
    reset() {
      sinceMs = null;
      pauseMs = RETRY_MS.first;
    },
  };
}

function endedError(context: ReaderContext): LogError {
  return context.closing.aborted
    ? new LogError('CLOSED', 'the log is closed')
    : new LogError('ABORTED', 'the read was aborted');
}

function translate(error: unknown, context: ReaderContext): LogError {
  return context.closing.aborted ? new LogError('CLOSED', 'the log is closed') : toLogError(error);
}
