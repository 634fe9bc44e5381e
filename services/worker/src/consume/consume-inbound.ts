/** The owner's reading of `inbound[p]`, in order, no faster than what follows from it can be written. */
import { errorText, hasLogCode, sleep } from '@throughline/log';
import type { Partition } from '@throughline/protocol';
import { SteadyReader } from '@throughline/tail';
import type { EventsWatch } from '../claim/events-watch.ts';
import type { WorkerContext } from '../context.ts';
import { LIVE } from './tenure-parts.ts';
import type { Tenure } from './tenure.ts';

const WAIT_MS = 5000;
const RETRY_MS = 250;

export interface InboundOptions {
  readonly partition: Partition;
  readonly epoch: string;
  readonly watch: EventsWatch;
  readonly tenure: Tenure;
}

/** Reads until `signal` fires or the log is closed. Never rejects. SPEC: WRK-SLEPT. */
export async function consumeInbound(
  context: WorkerContext,
  options: InboundOptions,
  signal: AbortSignal,
): Promise<void> {
  const { log, clock, logger, guard, outages, meta, worker, config } = context;
  const { partition, epoch, tenure } = options;
  const ref = { topic: 'inbound', partition } as const;
  const reader = new SteadyReader(log, clock, ref);
  let position = tenure.inbound();
  while (!signal.aborted) {
    try {
      const read = await reader.read(position, { waitMs: WAIT_MS, signal });
      if (signal.aborted) return;
      outages.onAnswer(ref);
      if (read.kind === 'batch') {
        guard.noteRead(epoch, ref, read.records.at(-1) ?? null, read.bounds.end);
        // By now it may have been replaced: what runs without a record of its start would run in two places.
        const isOverdue = read.records.length > 0 && !meta.isAlive(worker, config.deadAfterMs);
        if (isOverdue && !(await catchUp(context, options, signal))) return;
        for (const record of read.records) tenure.takeIn(record, LIVE);
        position = read.next;
        tenure.startAt(position);
        tenure.noteEnd(read.bounds.end);
        await tenure.room(signal);
      } else if (read.kind === 'gap') {
        const { start } = read;
        logger.error('client messages were evicted before they were served', { partition, from: position, to: start });
        tenure.lose(position, start);
        position = start;
        tenure.startAt(position);
      } else {
        guard.suspect(epoch, ref, position);
        await sleep(clock, RETRY_MS, signal);
      }
    } catch (error) {
      if (signal.aborted || hasLogCode(error, 'CLOSED')) return;
      outages.onError(error, ref);
      await sleep(clock, RETRY_MS, signal);
    }
  }
}

/** Until `events` was read as far as it goes now: a successor's claim ends the tenure. `false` when `signal` fired. */
async function catchUp(
  { clock, logger }: WorkerContext,
  { partition, watch }: InboundOptions,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    try {
      if (await watch.reachedEnd(signal)) return !signal.aborted;
    } catch (error) {
      if (signal.aborted) return false;
      logger.warn('whether the partition is still owned cannot be seen; trying again', {
        partition,
        error: errorText(error),
      });
      await sleep(clock, RETRY_MS, signal);
    }
  }
  return false;
}
