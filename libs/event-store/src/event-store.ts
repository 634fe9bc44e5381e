/**
 * A durable event store for servers that keep the HTTP transport of the official SDK: on a log of its own (memory,
 * SQLite, or another prefix on Kafka), with the ids and the refusals of gateways. SPEC: EVS-*.
 */
import { answerWithin, systemClock, systemRandom } from '@throughline/log';
import type { Clock, Log, Random } from '@throughline/log';
import { makeSessionKey, SESSION_KEY_BYTES, signSessionId, verifySessionId } from '@throughline/protocol';
import type { SessionId } from '@throughline/protocol';
import { Meta, SessionDirectory } from '@throughline/tail';
import { EventStoreError } from './errors.ts';
import { withDefaults } from './limits.ts';
import type { EventStoreLimits } from './limits.ts';
import { createSessionEvents } from './session-events.ts';
import type { SessionEvents } from './session-events.ts';
import { askedVersion } from './reinitialize.ts';
import { inTime } from './stream-scan.ts';

export interface EventStoreOptions {
  /** Open, and of this store alone: another file, or another prefix, than gateways and workers use. It is not closed here. */
  readonly log: Log;
  /** At least 32 bytes each. The first one signs session ids, all verify: the same in every process. */
  readonly secrets: readonly Uint8Array[];
  /** Name of the server, to which session ids are bound. Default `sdk`. */
  readonly server?: string;
  /** Milliseconds after which a session is not found any more. Default 24 h: no more than the log holds. */
  readonly maxLifeMs?: number;
  readonly limits?: EventStoreLimits;
  /** A read of the log failed and is tried again. */
  onError?(error: unknown): void;
  /** Default: the system's. */
  readonly clock?: Clock;
  readonly random?: Random;
}

export interface SessionEventStores {
  /** A new session. Errors: `TOO_MANY_SESSIONS`, those of `Log.bounds`. */
  create(principal?: string): Promise<SessionEvents>;
  /**
   * The session of that id, to be served by this process: the one that is open already, or one that another process
   * began. `null` if the id was not made here for this principal, or the session has ended, is too old, or belongs to a
   * former epoch: answer 404. Errors: `TOO_MANY_SESSIONS`, those of `Log.read`.
   */
  find(sessionId: string, principal?: string): Promise<SessionEvents | null>;
  /** Frees what the store holds; the log stays open. Idempotent. */
  close(): Promise<void>;
}

const MIN_SECRET_BYTES = 32;
const DAY_MS = 24 * 3600_000;
const START_MS = 30_000;
const SWEEP_MS = 60_000;

/** Errors: `TypeError` on wrong options, `SHARED_LOG`, those of the log. */
export async function openEventStore(options: EventStoreOptions): Promise<SessionEventStores> {
  const { secrets, server = 'sdk', maxLifeMs = DAY_MS, clock = systemClock, random = systemRandom } = options;
  const [signing] = secrets;
  if (signing === undefined || secrets.some((secret) => secret.length < MIN_SECRET_BYTES))
    throw new TypeError(`secrets must hold at least one secret, each of ${MIN_SECRET_BYTES} bytes or more`);
  if (!Number.isSafeInteger(maxLifeMs) || maxLifeMs < 1) throw new TypeError('maxLifeMs must be an integer from 1');
  const limits = withDefaults(options.limits ?? {});
  const log = answerWithin(options.log, clock);
  const { partitions } = await log.describe();
  const onError = (error: unknown): void => options.onError?.(error);
  const meta = new Meta({ log, clock, onError });
  const known = Array.from({ length: partitions }, (_, partition) => partition);
  const directory = new SessionDirectory({ log, clock, partitions: known, maxLifeMs, keepRecords: true, onError });
  const open = new Map<string, SessionEvents>();
  let waitingChars = 0;

  const close = async (): Promise<void> => {
    stopSweeping();
    open.clear();
    await Promise.all([meta.close(), directory.close()]);
  };
  const sweep = (): void => {
    directory.sweep();
    stopSweeping = clock.setTimer(SWEEP_MS, sweep);
  };
  let stopSweeping = (): void => undefined;

  try {
    const epoch = await inTime(clock, START_MS, (signal) => meta.ensureEpoch(random, signal));
    if (known.some((partition) => meta.hint(epoch, partition) !== null))
      throw new EventStoreError('SHARED_LOG', 'workers use this log: give the event store a log of its own');
    await inTime(clock, START_MS, (signal) => directory.sync(signal));
  } catch (error) {
    await close();
    throw error;
  }
  sweep();

  const currentEpoch = (): string => meta.epoch() ?? '';
  const serve = (sessionId: string, session: SessionId, principal: string, isRestored: boolean): SessionEvents => {
    const { partition, key } = session;
    if (open.size >= limits.maxSessions)
      throw new EventStoreError('TOO_MANY_SESSIONS', `${limits.maxSessions} sessions are open in this process`);
    const events = createSessionEvents({
      log,
      clock,
      limits,
      sessionId,
      session,
      isRestored,
      currentEpoch,
      hasEnded: () => directory.hasEnded(partition, key),
      initialize: () => directory.get(partition, key)?.record?.initialize ?? null,
      remember: (initialize) =>
        directory.put(partition, key, {
          server,
          principal,
          version: askedVersion(initialize),
          createdMs: session.createdMs,
          initialize,
          initialized: true,
          logLevel: null,
          subscriptions: [],
        }),
      async end() {
        await directory.end(partition, key, 'deleted');
        open.delete(key);
      },
      release() {
        open.delete(key);
      },
      take(chars) {
        if (waitingChars > 0 && waitingChars + chars > limits.maxWaitingChars) return false;
        waitingChars += chars;
        return true;
      },
      free(chars) {
        waitingChars -= chars;
      },
    });
    open.set(key, events);
    return events;
  };

  return {
    async create(principal = '') {
      const partition = Math.floor(random.unit() * partitions);
      const { end } = await log.bounds({ topic: 'events', partition });
      const key = makeSessionKey(random.bytes(SESSION_KEY_BYTES));
      const session = { epoch: currentEpoch(), partition, from: end, createdMs: clock.wallMs(), key };
      const sessionId = signSessionId(session, { principal, server }, signing);
      return serve(sessionId, session, principal, false);
    },
    async find(sessionId, principal = '') {
      const session = verifySessionId(sessionId, { principal, server }, secrets);
      if (session === null || session.epoch !== currentEpoch()) return null;
      const { partition, key, createdMs } = session;
      if (partition >= partitions || clock.wallMs() - createdMs > maxLifeMs) return null;
      // Another process may have ended it.
      await inTime(clock, limits.replayMs, (signal) => directory.syncPartition(partition, signal));
      if (directory.hasEnded(partition, key)) return null;
      return open.get(key) ?? serve(sessionId, session, principal, true);
    },
    close,
  };
}
