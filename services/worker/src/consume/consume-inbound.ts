/** The owner's reading of `inbound[p]`, in order, no faster than what follows from it can be written. */
import { hasLogCode, sleep } from '@throughline/log';
import type { Partition } from '@throughline/protocol';
import { SteadyReader } from '@throughline/tail';
import type { WorkerContext } from '../context.ts';
import { LIVE } from './tenure-parts.ts';
import type { Tenure } from './tenure.ts';

const WAIT_MS = 5000;
const RETRY_MS = 250;

export interface InboundOptions {
  readonly partition: Partition;
  readonly epoch: string;
  readonly tenure: Tenure;
}

/** Reads until `signal` fires or the log is closed. Never rejects. SPEC: WRK-SLEPT. */
export async function consumeInbound(
  context: WorkerContext,
  options: InboundOptions,
  signal: AbortSignal,
): Promise<void> {
  const { log, clock, logger, guard, outages } = context;
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
        // By now it may have been replaced: its successor serves what was read.
        const mayBeReplaced = read.records.length > 0 && !tenure.stillOwner.isSure();
        if (mayBeReplaced && !(await tenure.stillOwner.look(signal))) return;
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
