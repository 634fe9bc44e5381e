/**
 * Becoming the owner: append `owner.claimed` naming the claim in force, and read it back. Of two claimants exactly one
 * wins, whoever was paused where. A predecessor that still lives is waited for. SPEC: WRK-CLAIM, WRK-SUCCESSION.
 */
import { abortable, ackWithin, errorText, hasLogCode } from '@throughline/log';
import { EVENT_TYPE, makeRecord, NO_PREDECESSOR } from '@throughline/protocol';
import type { Offset, Partition } from '@throughline/protocol';
import type { OwnerState } from '@throughline/history';
import type { WorkerContext } from '../context.ts';
import type { EventsWatch } from './events-watch.ts';
import { RetryPace } from './retry-pace.ts';

const WAIT_MS = 250;

/** Whether the claim in force may be replaced now. Pure. */
export function mayReplace(owner: OwnerState | null, self: string, isAlive: (worker: string) => boolean): boolean {
  return owner === null || owner.released || owner.worker === self || !isAlive(owner.worker);
}

/**
 * The offset of this worker's claim, once it is in force; `null` when `signal` fires first. Errors: `CLOSED`; others are waited out.
 * @param onAppend told of each append of a claim: it may still be on its way when `signal` fires.
 */
export async function claimPartition(
  context: WorkerContext,
  watch: EventsWatch,
  partition: Partition,
  epoch: string,
  signal: AbortSignal,
  onAppend: (appending: Promise<unknown>) => void = () => undefined,
): Promise<Offset | null> {
  const { guard, clock, worker, config, logger, metrics } = context;
  const ref = { topic: 'events', partition } as const;
  const pace = new RetryPace(clock);
  while (!signal.aborted) {
    try {
      if (!(await watch.reachedEnd(signal))) return null;
      if (!(await isFree(context, watch.claims().owner(), signal))) {
        await changedOrSoon(context, watch, signal);
        continue;
      }
      // Read again: the claim in force may be another by now.
      const owner = watch.claims().owner();
      const claims = watch.claims().list();
      const predecessor = owner === null ? NO_PREDECESSOR : String(owner.claim);
      const record = makeRecord(EVENT_TYPE.claimed, null, JSON.stringify({ claims }), { predecessor, worker, epoch });
      const appending = ackWithin(clock, config.appendTimeoutMs, guard.append(ref, [record]));
      onAppend(appending);
      const appended = await abortable(appending, signal);
      const [claim = -1] = appended.offsets;
      if (!(await watch.reached(claim + 1, signal))) return null;
      const isValid = watch.claims().inForceAt(claim) === claim && watch.claims().owner()?.claim === claim;
      metrics.add('throughline_worker_claims_total', 1, { verdict: isValid ? 'valid' : 'void' });
      logger.info('claimed', { partition, claim, predecessor, valid: isValid });
      if (isValid) return claim;
    } catch (error) {
      if (signal.aborted) return null;
      if (hasLogCode(error, 'CLOSED')) throw error;
      const tell = (): void => {
        logger.warn('claim failed; trying again', { partition, error: errorText(error) });
      };
      await pace.failed(tell, signal);
    }
  }
  return null;
}

/** Whether nobody alive holds the claim. A worker that slept has seen no heartbeats, so it first reads what it missed. */
async function isFree(context: WorkerContext, owner: OwnerState | null, signal: AbortSignal): Promise<boolean> {
  const { meta, worker, config } = context;
  const isAlive = (name: string): boolean => meta.isAlive(name, config.deadAfterMs);
  if (!mayReplace(owner, worker, isAlive)) return false;
  if (owner === null || owner.released || owner.worker === worker) return true;
  await meta.sync(signal);
  return mayReplace(owner, worker, isAlive);
}

/**
 * Releases whatever claim of this worker is in force and was not released: its successors wait for that as long as
 * this worker lives. Resolves with `true` when there is none, with `false` when `signal` fires before.
 * Errors: `CLOSED`; others are waited out.
 */
export async function releaseClaims(
  context: WorkerContext,
  watch: EventsWatch,
  partition: Partition,
  signal: AbortSignal,
): Promise<boolean> {
  const { guard, clock, worker, config, logger } = context;
  const ref = { topic: 'events', partition } as const;
  const pace = new RetryPace(clock);
  while (!signal.aborted) {
    try {
      if (!(await watch.reachedEnd(signal))) return false;
      const owner = watch.claims().owner();
      if (owner === null || owner.worker !== worker || owner.released) return true;
      const record = makeRecord(EVENT_TYPE.released, null, null, { owner: String(owner.claim) });
      await abortable(ackWithin(clock, config.appendTimeoutMs, guard.append(ref, [record])), signal);
    } catch (error) {
      if (signal.aborted) return false;
      if (hasLogCode(error, 'CLOSED')) throw error;
      const tell = (): void => {
        logger.warn('release failed; trying again', { partition, error: errorText(error) });
      };
      await pace.failed(tell, signal);
    }
  }
  return false;
}

/** Resolves when a record came, or after a short while: heartbeats that stop make no event. */
function changedOrSoon(context: WorkerContext, watch: EventsWatch, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      cancel();
      stop();
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const cancel = context.clock.setTimer(WAIT_MS, finish);
    const stop = watch.onceChanged(finish);
    signal.addEventListener('abort', finish, { once: true });
    if (signal.aborted) finish();
  });
}
