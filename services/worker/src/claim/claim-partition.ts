/**
 * Becoming the owner: append `owner.claimed` naming the claim in force, and read it back. Of two claimants exactly one
 * wins, whoever was paused where. A predecessor that still lives is waited for. SPEC: WRK-CLAIM, WRK-SUCCESSION.
 */
import { hasLogCode, sleep } from '@throughline/log';
import { EVENT_TYPE, makeRecord, NO_PREDECESSOR } from '@throughline/protocol';
import type { Offset, Partition } from '@throughline/protocol';
import type { OwnerState } from '@throughline/history';
import type { WorkerContext } from '../context.ts';
import type { EventsWatch } from './events-watch.ts';

const WAIT_MS = 250;

/** Whether the claim in force may be replaced now. Pure. */
export function mayReplace(owner: OwnerState | null, self: string, isAlive: (worker: string) => boolean): boolean {
  return owner === null || owner.released || owner.worker === self || !isAlive(owner.worker);
}

/** The offset of this worker's claim, once it is in force; `null` when `signal` fires first. */
export async function claimPartition(
  context: WorkerContext,
  watch: EventsWatch,
  partition: Partition,
  epoch: string,
  signal: AbortSignal,
): Promise<Offset | null> {
  const { log, clock, meta, worker, config, logger, metrics } = context;
  const ref = { topic: 'events', partition } as const;
  while (!signal.aborted) {
    try {
      const { end } = await log.bounds(ref);
      if (!(await watch.reached(end, signal))) return null;
      const owner = watch.claims().owner();
      if (!mayReplace(owner, worker, (name) => meta.isAlive(name, config.deadAfterMs))) {
        await changedOrSoon(context, watch, signal);
        continue;
      }
      const claims = watch.claims().list();
      const predecessor = owner === null ? NO_PREDECESSOR : String(owner.claim);
      const record = makeRecord(EVENT_TYPE.claimed, null, JSON.stringify({ claims }), { predecessor, worker, epoch });
      const [claim = -1] = (await log.append(ref, [record])).offsets;
      if (!(await watch.reached(claim + 1, signal))) return null;
      const isValid = watch.claims().inForceAt(claim) === claim && watch.claims().owner()?.claim === claim;
      metrics.add('throughline_worker_claims_total', 1, { verdict: isValid ? 'valid' : 'void' });
      logger.info('claimed', { partition, claim, predecessor, valid: isValid });
      if (isValid) return claim;
    } catch (error) {
      if (signal.aborted || hasLogCode(error, 'CLOSED')) return null;
      logger.warn('claim failed; trying again', {
        partition,
        error: error instanceof Error ? error.message : String(error),
      });
      await sleep(clock, WAIT_MS, signal);
    }
  }
  return null;
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
  });
}
