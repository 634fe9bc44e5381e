/**
 * The event store of one session, for the transport of one process: what the SDK asks for, and what the SDK has no word
 * for (the end of a session, its beginning anew in another process). SPEC: EVS-*.
 */
import type { Clock, Log } from '@throughline/log';
import { classifyMessage } from '@throughline/protocol';
import type { JsonRpcRequest, SessionId } from '@throughline/protocol';
import { EventStoreError, ResumeRefused } from './errors.ts';
import type { Limits } from './limits.ts';
import { reinitialize } from './reinitialize.ts';
import type { HandleRequest } from './reinitialize.ts';
import { findAnchor, openCursor, replayAfter } from './replay.ts';
import type { ReplayOptions } from './replay.ts';
import { SDK_STANDALONE } from './stored-event.ts';
import { inTime } from './stream-scan.ts';
import { StreamWriter } from './stream-writer.ts';

/** An `EventStore` of both lines of the official SDK; one for each transport. */
export interface SessionEvents {
  /** For `sessionIdGenerator`. */
  readonly sessionId: string;
  /**
   * Stores an event; resolves with its id once it is durable, in the order of the calls of its stream.
   * Errors: those of `Log.append` (after `APPEND_UNKNOWN` the event may be replayed), `TOO_LARGE`, `TOO_MUCH_WAITING`,
   * `SESSION_ENDED`, `CONTENDED`; `LOG_UNAVAILABLE` if the place of the stream cannot be read in time.
   */
  storeEvent(streamId: string, message: unknown): Promise<string>;
  /**
   * Hands everything behind the event to `send`, in order, then resolves with the stream. Until the transport has gone
   * on, nothing of the stream is stored in this process, so that nothing falls between replay and live.
   * Errors: `ResumeRefused`, `REPLAY_TOO_LARGE`, those of `Log.read`; then nothing was sent.
   */
  replayEventsAfter(
    lastEventId: string,
    to: { readonly send: (eventId: string, message: never) => Promise<void> },
  ): Promise<string>;
  /** Why a resume at this id would be refused, to answer in your own words; `null` if it would not be. Errors: those of `Log.read`. */
  judge(lastEventId: string): Promise<ResumeRefused | null>;
  /** Keeps `initialize`, so that another process can go on with this session. Errors: `TypeError`, those of `Log.append`. */
  remember(initialize: unknown): Promise<void>;
  /** Whether `initialize` is kept. */
  isRemembered(): boolean;
  /**
   * Gives a fresh transport the `initialize` that was kept, and `notifications/initialized`: it serves the session then.
   * @param handle `(request) => transport.handleRequest(request)`, or `nodeHandler(transport)`.
   * Errors: `RESTORE_REFUSED`.
   */
  reinitialize(handle: HandleRequest): Promise<void>;
  /** The session has ended: its ids are refused from now on, in every process. Idempotent. Errors: those of `Log.append`. */
  end(): Promise<void>;
  /** This process no longer serves the session; another one may. */
  release(): void;
}

export interface SessionEventsOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly sessionId: string;
  readonly session: SessionId;
  /** It began in another process, or in a former life of this one. */
  readonly isRestored: boolean;
  currentEpoch(): string;
  hasEnded(): boolean;
  initialize(): JsonRpcRequest | null;
  remember(initialize: JsonRpcRequest): Promise<void>;
  end(): Promise<void>;
  release(): void;
  /** Takes room for so many characters; `false` if there is none. */
  take(chars: number): boolean;
  free(chars: number): void;
}

export function createSessionEvents(options: SessionEventsOptions): SessionEvents {
  const { log, clock, limits, session, sessionId } = options;
  const of = { topic: 'events', partition: session.partition } as const;
  const place = { sessionId, epoch: session.epoch, partition: session.partition, key: session.key };
  /** In the order of their use. */
  const writers = new Map<string, StreamWriter>();
  /** The place of a stream that goes on may have been forgotten. */
  let hasForgotten = false;

  const asOfNow = (): ReplayOptions => ({
    log,
    of,
    limits,
    place,
    session,
    currentEpoch: options.currentEpoch(),
    sessionEnded: options.hasEnded(),
  });

  const writerOf = (sdkStream: string, isFresh: boolean): StreamWriter => {
    const known = writers.get(sdkStream);
    const writer = known ?? new StreamWriter({ log, clock, limits, of, place, sdkStream, from: session.from, isFresh });
    writers.delete(sdkStream);
    if (known === undefined && writers.size >= limits.maxStreams) forget();
    writers.set(sdkStream, writer);
    return writer;
  };

  /** Those that were answered first: nobody writes to them any more. */
  const forget = (): void => {
    const idle = [...writers].filter(([, writer]) => writer.isIdle());
    const [oldest] = idle.find(([, writer]) => writer.isAnswered) ?? idle[0] ?? [];
    if (oldest === undefined) return;
    if (writers.get(oldest)?.isAnswered === false) hasForgotten = true;
    writers.delete(oldest);
  };

  /** Streams of calls have names that nobody used before; the SDK begins them with a primer, where the client can take one. */
  const isFresh = (sdkStream: string, isPrimer: boolean): boolean =>
    sdkStream === SDK_STANDALONE ? !options.isRestored && !hasForgotten : isPrimer || !hasForgotten;

  return {
    sessionId,
    async storeEvent(streamId, message) {
      if (options.hasEnded() || options.currentEpoch() !== session.epoch)
        throw new EventStoreError('SESSION_ENDED', 'the session has ended: nothing is stored in it');
      const json = JSON.stringify(message);
      if (json.length * 3 + MAX_HEADER_BYTES > log.description.maxRecordBytes && !fits(json, log))
        throw new EventStoreError(
          'TOO_LARGE',
          `the message is larger than a record of the log may be (${log.description.maxRecordBytes} bytes)`,
        );
      if (!options.take(json.length))
        throw new EventStoreError('TOO_MUCH_WAITING', 'too many messages wait for the log; none was stored');
      try {
        const isPrimer = json === '{}';
        const writer = writerOf(streamId, isFresh(streamId, isPrimer));
        if (isAnswer(message)) writer.isAnswered = true;
        return await writer.store(json, isPrimer);
      } finally {
        options.free(json.length);
      }
    },
    async replayEventsAfter(lastEventId, { send }) {
      const now = asOfNow();
      const cursor = openCursor(now, lastEventId);
      return await inTime(clock, limits.replayMs, async (signal) => {
        const anchor = await findAnchor(now, lastEventId, cursor, signal);
        const writer = writerOf(anchor.stored.sdkStream, false);
        return await writer.exclusively(async (head) => {
          const atLeast = writer.position();
          const told = send as (eventId: string, message: unknown) => Promise<void>;
          const replayed = await replayAfter(now, lastEventId, anchor, { head, atLeast, signal }, told);
          return { head: replayed, result: anchor.stored.sdkStream };
        });
      });
    },
    async judge(lastEventId) {
      try {
        const now = asOfNow();
        const cursor = openCursor(now, lastEventId);
        await inTime(clock, limits.replayMs, (signal) => findAnchor(now, lastEventId, cursor, signal));
        return null;
      } catch (error) {
        if (error instanceof ResumeRefused) return error;
        throw error;
      }
    },
    async remember(message) {
      const classified = classifyMessage(message);
      if (!('kind' in classified) || classified.kind !== 'request' || classified.message.method !== 'initialize')
        throw new TypeError('remember needs the initialize request of the client, as it came');
      await options.remember(classified.message);
    },
    isRemembered: () => options.initialize() !== null,
    reinitialize: (handle) => reinitialize({ clock, handle, initialize: options.initialize() }),
    end: options.end,
    release: options.release,
  };
}

function isAnswer(message: unknown): boolean {
  return typeof message === 'object' && message !== null && ('result' in message || 'error' in message);
}

/** Key and headers of a record of this store, with room to spare. */
const MAX_HEADER_BYTES = 512;

/** Exactly, for messages of which a glance at the length does not tell. */
function fits(json: string, log: Log): boolean {
  return Buffer.byteLength(json) + MAX_HEADER_BYTES <= log.description.maxRecordBytes;
}
