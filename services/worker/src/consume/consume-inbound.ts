/** The owner's reading of `inbound[p]`, in order, no faster than what follows from it can be written. */
import { hasLogCode, sleep } from '@throughline/log';
import type { Partition } from '@throughline/protocol';
import { errorText } from '../context.ts';
import type { WorkerContext } from '../context.ts';
import { LIVE } from './tenure-parts.ts';
import type { Tenure } from './tenure.ts';

const WAIT_MS = 5000;
const RETRY_MS = 250;

/** Reads until `signal` fires or the log is closed. Never rejects. */
export async function consumeInbound(
  { log, clock, logger }: WorkerContext,
  partition: Partition,
  tenure: Tenure,
  signal: AbortSignal,
): Promise<void> {
  let position = tenure.inbound();
  while (!signal.aborted) {
    try {
      const batch = await log.read({ topic: 'inbound', partition }, position, { waitMs: WAIT_MS, signal });
      if (signal.aborted) return;
      for (const record of batch.records) tenure.takeIn(record, LIVE);
      position = batch.next;
      tenure.startAt(position);
      tenure.noteEnd(batch.bounds.end);
      await tenure.room(signal);
    } catch (error) {
      if (signal.aborted || hasLogCode(error, 'CLOSED')) return;
      const start = hasLogCode(error, 'OFFSET_OUT_OF_RANGE') ? error.details.start : undefined;
      if (start !== undefined && start > position) {
        logger.error('client messages were evicted before they were served', { partition, from: position, to: start });
        position = start;
      } else {
        logger.warn('log read failed; trying again', { topic: 'inbound', partition, error: errorText(error) });
        await sleep(clock, RETRY_MS, signal);
      }
    }
  }
}
