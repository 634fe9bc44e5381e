/** Which sessions a message may be sent to: those that `sessions` names, of the epoch in force, without an end. SPEC: PRD-SESSION. */
import { deadline, hasLogCode } from '@throughline/log';
import type { Clock, Log } from '@throughline/log';
import { parseSessionId } from '@throughline/protocol';
import type { SessionId } from '@throughline/protocol';
import { Meta, SessionDirectory } from '@throughline/tail';
import { ProducerError } from './errors.ts';

export interface KnownSessions {
  /** Errors: `SESSION_UNKNOWN`, `SESSION_ENDED`; `UNAVAILABLE` if the log does not say it in time. */
  find(sessionId: string, signal: AbortSignal): Promise<{ readonly session: SessionId; readonly server: string }>;
  close(): Promise<void>;
}

export interface KnownSessionsOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly maxLifeMs: number;
  readonly onError: (error: unknown) => void;
}

const SWEEP_MS = 60_000;
const START_MS = 30_000;

export async function openKnownSessions({
  log,
  clock,
  maxLifeMs,
  onError,
}: KnownSessionsOptions): Promise<KnownSessions> {
  const { partitions } = await log.describe();
  const meta = new Meta({ log, clock, onError });
  const known = Array.from({ length: partitions }, (_, partition) => partition);
  const directory = new SessionDirectory({ log, clock, partitions: known, maxLifeMs, keepRecords: false, onError });
  const stopGrowing = log.onGrown(() => {
    for (let partition = 0; partition < log.description.partitions; partition++) directory.follow(partition);
  });
  let stopSweeping = (): void => undefined;
  const sweep = (): void => {
    directory.sweep();
    stopSweeping = clock.setTimer(SWEEP_MS, sweep);
  };
  const close = async (): Promise<void> => {
    stopGrowing();
    stopSweeping();
    await Promise.all([meta.close(), directory.close()]);
  };
  const limit = deadline(clock, START_MS);
  try {
    await Promise.all([meta.sync(limit.signal), directory.sync(limit.signal)]);
  } catch (error) {
    await close();
    throw limit.expired() ? new ProducerError('UNAVAILABLE', 'the log could not be read in time', error) : error;
  } finally {
    limit.dispose();
  }
  sweep();

  const sync = async (partition: number, signal: AbortSignal): Promise<void> => {
    try {
      await Promise.all([meta.sync(signal), directory.syncPartition(partition, signal)]);
    } catch (error) {
      throw new ProducerError(
        hasLogCode(error, 'CLOSED') ? 'CLOSED' : 'UNAVAILABLE',
        'the log did not say in time whether the session is known',
        error,
      );
    }
  };

  return {
    async find(sessionId, signal) {
      const session = parseSessionId(sessionId)?.id;
      if (session === undefined) throw new ProducerError('SESSION_UNKNOWN', 'the text is no session id');
      const { partition, key } = session;
      const isKnown = (): boolean =>
        session.epoch === meta.epoch() && (directory.get(partition, key)?.record ?? null) !== null;
      // It may have begun a moment ago.
      if (!isKnown()) await sync(partition, signal);
      if (directory.hasEnded(partition, key)) throw new ProducerError('SESSION_ENDED', 'the session has ended');
      if (!isKnown())
        throw new ProducerError('SESSION_UNKNOWN', 'no session of this log in the epoch in force has this id');
      return { session, server: directory.get(partition, key)?.record?.server ?? '' };
    },
    close,
  };
}
