/**
 * What a new owner does before it takes new work: reads `inbound` from the newest checkpoint, settles or dispatches
 * what a former owner left, and ends sessions that it may not rebuild. SPEC: WRK-TAKEOVER.
 */
import { classifyMessage, decodeText } from '@throughline/protocol';
import type { LogRecord } from '@throughline/protocol';
import type { SessionDirectory } from '@throughline/tail';
import type { WorkerContext } from '../context.ts';
import { idKey } from '../consume/open-call.ts';
import { readRange } from '../consume/read-range.ts';
import type { Tenure } from '../consume/tenure.ts';
import type { EventsWatch } from './events-watch.ts';

export interface TakeOverOptions {
  readonly context: WorkerContext;
  readonly partition: number;
  readonly watch: EventsWatch;
  readonly directory: SessionDirectory;
  readonly tenure: Tenure;
  readonly signal: AbortSignal;
}

/** Errors: those of `Log.read` and `Log.bounds`. */
export async function takeOver({
  context,
  partition,
  watch,
  directory,
  tenure,
  signal,
}: TakeOverOptions): Promise<void> {
  const { log, logger } = context;
  const checkpoint = watch.checkpoint();
  const { end } = await log.bounds({ topic: 'inbound', partition });
  const onEvicted = (start: number): void => {
    logger.error('client messages were evicted before they were served', { partition, start });
  };
  const range = { log, partition, from: checkpoint?.from ?? 0, below: end, signal, onEvicted };
  // A cancel lies behind its request: all of them are known before the first request is decided.
  const cancels = new Set<string>();
  for await (const record of readRange(range)) {
    const cancel = cancelOf(record);
    if (cancel !== null) cancels.add(cancel);
  }
  const open = new Set(checkpoint?.open.map(({ at }) => at));
  tenure.startAt(checkpoint?.inbound ?? 0);
  tenure.meetSessions(directory.living(partition));
  for await (const record of readRange(range)) {
    const checkpointed = record.offset < (checkpoint?.inbound ?? 0);
    tenure.takeIn(record, { kind: 'takeover', checkpointed, isOpen: open.has(record.offset), cancels });
  }
  await tenure.endTerminating();
}

function cancelOf(record: LogRecord): string | null {
  if (record.key === null || record.value === null) return null;
  const text = decodeText(record.value);
  if (!text.includes('notifications/cancelled')) return null;
  try {
    const classified = classifyMessage(JSON.parse(text));
    if (
      !('kind' in classified) ||
      classified.kind !== 'notification' ||
      classified.message.method !== 'notifications/cancelled'
    )
      return null;
    const requestId = classified.message.params?.['requestId'];
    return typeof requestId === 'string' || typeof requestId === 'number'
      ? `${decodeText(record.key)}\n${idKey(requestId)}`
      : null;
  } catch {
    return null;
  }
}
