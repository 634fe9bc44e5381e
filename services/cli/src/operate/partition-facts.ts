/** What the log says of one partition: whose it is, what is open in it, how far the work has come. */
import { RequestLedger } from '@throughline/history';
import { deadline, LogError, readRange } from '@throughline/log';
import type { Bounds, Clock, Log } from '@throughline/log';
import { classifyText, decodeText, readCheckpoint, readInboundRecord, streamOfRequest } from '@throughline/protocol';
import type { Checkpoint, Epoch, EventRecord, LogRecord, Offset, Partition, Topic } from '@throughline/protocol';
import { PartitionReader } from '@throughline/tail';
import type { Meta } from '@throughline/tail';
import { watchTrouble } from './read-trouble.ts';

export interface PartitionFacts {
  readonly partition: Partition;
  readonly events: Bounds;
  readonly inbound: Bounds;
  /** The claim in force; null: nobody ever claimed in this epoch. */
  readonly owner: {
    readonly claim: Offset;
    readonly worker: string;
    readonly released: boolean;
    /** Null: the claim is no longer held. */
    readonly sinceMs: number | null;
  } | null;
  /** Claims behind the one in force that do not count: another worker tries to get the partition. */
  readonly voidClaims: readonly { readonly offset: Offset; readonly worker: string }[];
  /** The newest one that counts; null: none is known in this epoch. */
  readonly checkpoint: { readonly offset: Offset; readonly atMs: number } | null;
  /** Requests that were taken in, or wait, and are not answered; null without a checkpoint to count from. */
  readonly open: {
    readonly count: number;
    /** More than were looked at. */
    readonly isMore: boolean;
    readonly lowest: Offset | null;
    readonly lowestAtMs: number | null;
    /** How often the one that was started most often was started; more than once: it may have ended its worker. */
    readonly mostAttempts: number;
    /** The first of them, in order. */
    readonly offsets: readonly Offset[];
  } | null;
  /** Records of `events` that are no events of this format, behind the newest checkpoint. */
  readonly unreadable: number;
}

export interface PartitionSource {
  readonly log: Log;
  readonly clock: Clock;
  readonly meta: Meta;
  readonly epoch: Epoch;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Open requests behind a stalled owner may be many: looking at so many says enough. */
const MOST_INBOUND = 20_000;
const MOST_LISTED = 1000;

/** Errors: those of `Log.read`; `ABORTED` when it takes longer than `timeoutMs`. */
export async function readPartitionFacts(source: PartitionSource, partition: Partition): Promise<PartitionFacts> {
  const { log, clock, meta, epoch } = source;
  const trouble = watchTrouble();
  const limit = deadline(clock, source.timeoutMs, AbortSignal.any([source.signal, trouble.signal]));
  const of = { topic: 'events', partition } as const;
  const fold = new PartitionFold();
  const [events, inbound] = [await log.bounds(of), await log.bounds({ topic: 'inbound', partition })];
  const reader = new PartitionReader({
    log,
    clock,
    partition,
    epoch,
    hint: () => meta.hint(epoch, partition),
    syncHints: (signal) => meta.sync(signal),
    onEvent: (event, verdict) => {
      fold.take(event, verdict === 'accepted');
    },
    onUnreadable: () => {
      fold.unreadable++;
    },
    onError: trouble.onError,
  });
  try {
    if (!(await reader.reached(events.end, limit.signal)))
      throw trouble.cause(
        new LogError('ABORTED', `partition ${partition} was not read to its end within ${source.timeoutMs} ms`),
      );
    const owner = reader.claims().owner();
    const claimRecord = owner === null ? null : await readOne(log, of, owner.claim, limit.signal);
    return {
      partition,
      events,
      inbound,
      owner: owner === null ? null : { ...owner, sinceMs: claimRecord?.timestampMs ?? null },
      voidClaims: fold.voidClaims.filter(({ offset }) => offset > (owner?.claim ?? -1)),
      checkpoint: fold.checkpointAt,
      open: fold.checkpoint === null ? null : await countOpen(source, partition, fold, inbound, limit.signal),
      unreadable: fold.unreadable,
    };
  } finally {
    limit.dispose();
    await reader.stop();
  }
}

class PartitionFold {
  readonly voidClaims: { offset: Offset; worker: string }[] = [];
  ledger = new RequestLedger(null);
  checkpoint: Checkpoint | null = null;
  checkpointAt: { offset: Offset; atMs: number } | null = null;
  unreadable = 0;

  take(event: EventRecord, isAccepted: boolean): void {
    const { body, record } = event;
    if (!isAccepted) {
      if (body.type === 'claimed') this.voidClaims.push({ offset: event.offset, worker: body.worker });
      return;
    }
    const checkpoint = body.type === 'checkpoint' ? readCheckpoint(record) : null;
    if (checkpoint === null) this.ledger.fold(event);
    else {
      this.checkpoint = checkpoint;
      this.checkpointAt = { offset: event.offset, atMs: record.timestampMs };
      this.ledger = new RequestLedger(checkpoint);
      this.unreadable = 0;
    }
  }
}

async function countOpen(
  { log }: PartitionSource,
  partition: Partition,
  { checkpoint, ledger }: PartitionFold,
  inbound: Bounds,
  signal: AbortSignal,
): Promise<PartitionFacts['open']> {
  if (checkpoint === null) return null;
  const of = { topic: 'inbound', partition } as const;
  const open = checkpoint.open.map(({ at }) => at).filter((at) => ledger.get(at)?.ended !== true);
  const from = Math.max(checkpoint.inbound, inbound.start);
  const below = Math.min(inbound.end, from + MOST_INBOUND);
  for await (const record of readRange({ log, of, from, below, signal })) {
    const read = readInboundRecord(record);
    if ('unreadable' in read || !isRequest(record)) continue;
    if (ledger.get(record.offset, streamOfRequest(read).at)?.ended !== true) open.push(record.offset);
  }
  const lowest = open.length === 0 ? null : Math.min(...open);
  const record = lowest === null ? null : await readOne(log, of, lowest, signal);
  return {
    count: open.length,
    isMore: below < inbound.end,
    lowest,
    lowestAtMs: record?.timestampMs ?? null,
    mostAttempts: Math.max(0, ...open.map((at) => ledger.get(at)?.attempt ?? 0)),
    offsets: open.sort((a, b) => a - b).slice(0, MOST_LISTED),
  };
}

function isRequest({ value }: LogRecord): boolean {
  if (value === null) return false;
  const classified = classifyText(decodeText(value));
  return 'kind' in classified && classified.kind === 'request';
}

/** The record at `offset`; null: none is held there. Errors: those of `Log.read`. */
export async function readOne(
  log: Log,
  of: { readonly topic: Topic; readonly partition: Partition },
  offset: Offset,
  signal: AbortSignal,
): Promise<LogRecord | null> {
  for await (const record of readRange({ log, of, from: offset, below: offset + 1, signal })) return record;
  return null;
}
