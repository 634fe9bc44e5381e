/**
 * One tenure: what an owner does between its claim and its release or loss. It takes in `inbound` in order, and says in
 * checkpoints what a successor needs. What is done with each message is told by the parts beside it.
 * SPEC: WRK-CHECKPOINT, WRK-LEAVE, WRK-POISON, WRK-LOST.
 */
import {
  canPrime,
  classifyText,
  decodeText,
  readInboundRecord,
  readSessionEnd,
  STANDALONE,
  wireError,
} from '@throughline/protocol';
import type {
  BatchPlace,
  Checkpoint,
  EventRecord,
  InboundRecord,
  JsonRpcId,
  LogRecord,
  LostRequests,
  Offset,
  Partition,
  SessionEndReason,
} from '@throughline/protocol';
import type { Verdict } from '@throughline/history';
import type { SessionDirectory } from '@throughline/tail';
import type { EventsWatch } from '../claim/events-watch.ts';
import { StillOwner } from '../claim/still-owner.ts';
import type { Progress } from '../claim/lag-commits.ts';
import type { WorkerContext } from '../context.ts';
import { PartitionWriter } from '../settle/partition-writer.ts';
import { evictedError } from '../settle/call-errors.ts';
import { Settler } from '../settle/settler.ts';
import { BatchTable, isComplete } from './batch-table.ts';
import type { BatchState } from './batch-table.ts';
import { ClientCalls } from './client-calls.ts';
import { ClientMessages } from './client-messages.ts';
import { DeadLetters } from './dead-letter.ts';
import { DedupeWindow } from './dedupe-window.ts';
import { ServerMessages } from './server-messages.ts';
import { ProducedMessages } from './produced-messages.ts';
import { LostRanges } from './lost-ranges.ts';
import { SessionLife } from './session-life.ts';
import { SessionRecords } from './session-records.ts';
import { SessionTable } from './session-table.ts';
import { SessionUpkeep } from './session-upkeep.ts';
import { isAccepted } from './tenure-parts.ts';
import type { Phase, TenureParts } from './tenure-parts.ts';

export interface TenureOptions {
  readonly context: WorkerContext;
  readonly partition: Partition;
  readonly claim: Offset;
  readonly watch: EventsWatch;
  readonly directory: SessionDirectory;
  /** The claim is void, or an append has an unknown outcome: this tenure is over. Called once. */
  onLost(reason: string): void;
}

export class Tenure {
  readonly #options: TenureOptions;
  readonly #parts: TenureParts;
  readonly #dedupe: DedupeWindow;
  readonly #batches = new BatchTable();
  readonly #lost = new LostRanges();
  readonly #calls: ClientCalls;
  readonly #client: ClientMessages;
  readonly #server: ServerMessages;
  readonly #upkeep: SessionUpkeep;
  readonly #produced: ProducedMessages;
  readonly #stop = new AbortController();
  readonly #waiters = new Set<() => void>();
  /** Whether it may have been replaced unseen. */
  readonly stillOwner: StillOwner;
  /** Its sessions, for those who take them over and end them. */
  readonly life: SessionLife;
  #inbound: Offset = 0;
  #inboundEnd: Offset = 0;
  #isLeaving = false;
  #isHalted = false;
  /** Whether something happened that the newest checkpoint does not say. */
  #dirty = true;

  constructor(options: TenureOptions) {
    const { context, partition, claim, watch, directory } = options;
    this.#options = options;
    const writer = new PartitionWriter({
      log: {
        description: context.log.description,
        append: (to, records) => context.guard.append(to, records),
      },
      clock: context.clock,
      partition,
      deadlineMs: context.config.appendTimeoutMs,
      shares: context.shares,
      principalOf: (session) => parts.sessions.get(session)?.principal ?? '',
      onLost: (reason) => {
        this.#lose(reason);
      },
    });
    this.stillOwner = new StillOwner(context, partition, watch, this.#stop.signal);
    const parts: TenureParts = {
      context,
      partition,
      claim,
      watch,
      stillOwner: this.stillOwner,
      directory,
      writer,
      settler: new Settler(writer, claim),
      sessions: new SessionTable(context.clock),
      deadLetters: new DeadLetters(context),
      over: this.#stop.signal,
      isLeaving: () => this.#isLeaving,
      isHalted: () => this.#isHalted,
      touch: () => {
        this.#dirty = true;
      },
      wake: () => {
        for (const wake of this.#waiters) wake();
      },
    };
    this.#parts = parts;
    this.#dedupe = new DedupeWindow(context.clock);
    const records = new SessionRecords(parts);
    const life = new SessionLife(parts, {
      onMessage: (session, message, related) => this.#server.take(session, message, related),
      onCloseStream: (session, related) => {
        this.#server.closeStream(session, related);
      },
      onReady: (session) => {
        this.#server.tellChanges(session);
      },
      say: (session, call, json) => {
        this.#server.say(session, call, json);
      },
      failCalls: (session, error, which) => {
        this.#calls.failAll(session, error, which);
      },
    });
    const calls = new ClientCalls(parts, life, this.#dedupe);
    const client = new ClientMessages({
      parts,
      calls,
      life,
      records,
      onInitialized: (session) => {
        this.#server.tellChanges(session);
      },
    });
    const server = new ServerMessages({
      parts,
      calls,
      life,
      records,
      pass: (session, message) => {
        client.pass(session, message, false);
      },
    });
    this.life = life;
    this.#calls = calls;
    this.#client = client;
    this.#server = server;
    this.#produced = new ProducedMessages(parts, life, this.#dedupe);
    this.#upkeep = new SessionUpkeep({ parts, life, records, server });
    watch.listener = (event, verdict) => {
      this.#onEvent(event, verdict);
    };
  }

  /** Everything below was taken in. */
  inbound(): Offset {
    return this.#inbound;
  }

  /** Everything below `offset` was taken in, or needs not be. */
  startAt(offset: Offset): void {
    this.#inbound = Math.max(this.#inbound, offset);
  }

  /** What lies in `inbound` from `from` on, and below `to`, cannot be served: the next checkpoint says so. */
  lose(from: Offset, to: Offset): void {
    this.#lost.add(from, to, this.#parts.watch.position());
    this.#dirty = true;
  }

  /** What former owners could not serve. */
  inheritLost(lost: readonly LostRequests[]): void {
    this.#lost.inherit(lost);
  }

  /** The end of `inbound` was seen at `end`. */
  noteEnd(end: Offset): void {
    this.#inboundEnd = end;
  }

  /** Never less than before, once the takeover is over: what opens later lies behind what was taken in. */
  progress(): Progress {
    return {
      todo: Math.min(this.#inbound, this.#calls.lowest()),
      end: Math.max(this.#inbound, this.#inboundEnd),
      open: this.#calls.openCount(),
    };
  }

  /** Takes in the next inbound record. Synchronous: after it the record counts as taken in. */
  takeIn(record: LogRecord, phase: Phase): void {
    this.#inbound = Math.max(this.#inbound, record.offset + 1);
    this.#dirty = true;
    const isPast = phase.kind === 'takeover' && phase.isPast;
    const inbound = readInboundRecord(record);
    for (const broken of this.#batches.broken(firstOfBatch(inbound))) {
      this.#tellLost(broken, this.#lostOf(broken, record.offset, phase));
      this.#endBatch(broken);
    }
    if ('unreadable' in inbound) {
      if (!isPast) this.#toDeadLetters(record, inbound.unreadable);
      return;
    }
    const { body, key } = inbound;
    if (body.type === 'probe') return;
    if (body.type === 'sessionEnd') {
      const isKnown = phase.kind === 'takeover' && this.#parts.watch.since().endedSessions().has(key);
      if (!isPast && !isKnown) void this.life.end(key, endReason(record));
      return;
    }
    if (body.type === 'produced') {
      const fault = this.#produced.take(inbound, body, phase);
      if (fault !== null && !isPast) this.#toDeadLetters(record, fault);
      return;
    }
    const classified = classifyText(decodeText(record.value ?? new Uint8Array(0)));
    const batch = body.batch === null ? null : this.#seeBatch(inbound, body.batch, isPast);
    const lost = batch === null ? [] : this.#lostOf(batch, record.offset, phase);
    if ('fault' in classified) this.#takeUnreadable(inbound, batch, phase, classified.fault);
    else if (classified.kind === 'request') {
      if (batch !== null) batch.requests++;
      this.#calls.take(inbound, body, classified.message, batch, phase);
    } else if (!isPast) {
      const canPoll = canPrime(body.version);
      if (classified.kind === 'notification') this.#client.notify(key, classified.message, canPoll);
      // Answers that lay there before the claim are known by their places.
      else if (phase.kind === 'live') this.#client.answer(key, classified.message, canPoll);
    }
    if (batch === null) return;
    this.#tellLost(batch, lost);
    if (this.#batches.close(batch)) this.#endBatch(batch);
  }

  /** All that former owners left in `inbound` was taken in: calls that had spoken go on. */
  recall(): void {
    this.#calls.recall();
  }

  /** Resolves when what was taken in has been dealt with so far that there is room for more, or `signal` fires. */
  async room(signal: AbortSignal): Promise<void> {
    await this.#parts.deadLetters.room(signal);
    await this.#parts.writer.room();
  }

  /** Reports event records that cannot be read, those found since the newest checkpoint included. */
  reportUnreadable(): void {
    const { watch, deadLetters, partition } = this.#parts;
    watch.reportUnreadable((record, why) => {
      deadLetters.put({ topic: 'events', partition }, record, why);
    });
  }

  /** Ends and mends sessions. Called now and then. */
  sweep(): void {
    if (!this.#isLeaving && !this.#stop.signal.aborted) this.#upkeep.run();
  }

  /**
   * What a successor needs, as of everything that was written so far; `null` if the newest checkpoint says it all.
   * To be written at once: what is written in between would be neither in it nor after it.
   */
  checkpointValue(force: boolean): Checkpoint | null {
    if (!this.#dirty && !force) return null;
    this.#dirty = false;
    const ending = this.life.ending();
    const lost = this.#lost.told(this.#parts.watch.heldFrom());
    return {
      claims: this.#parts.watch.claims().list(),
      inbound: this.#inbound,
      from: Math.min(this.#inbound, this.#calls.from(), this.#dedupe.from()),
      open: this.#calls.open(),
      ...(ending.length === 0 ? {} : { ending }),
      ...(lost.length === 0 ? {} : { lost }),
    };
  }

  /** Appends a checkpoint; resolves with its offset once it was read back accepted, or `null` if it was not. */
  async writeCheckpoint(value: string): Promise<Offset | null> {
    const written = this.#parts.settler.checkpoint(value);
    if (written === null) {
      // Open requests are bounded so that this does not happen. The one before stays valid: a takeover reads more.
      this.#dirty = true;
      this.#parts.context.logger.error(
        'the checkpoint is larger than a record of the log may be; the former one stays',
        {
          partition: this.#parts.partition,
          chars: value.length,
        },
      );
      return null;
    }
    const at = await written;
    return (await isAccepted(this.#parts, at)) ? at : null;
  }

  /** No new work from here. Resolves when nothing runs any more, or `signal` fires. */
  async quiesce(signal: AbortSignal): Promise<void> {
    this.#isLeaving = true;
    this.#calls.hold();
    const isQuiet = (): boolean => this.#parts.sessions.all().every((session) => session.running === 0);
    await new Promise<void>((resolve) => {
      const check = (): void => {
        if (!isQuiet() && !signal.aborted && !this.#stop.signal.aborted) return;
        this.#waiters.delete(check);
        signal.removeEventListener('abort', check);
        this.#stop.signal.removeEventListener('abort', check);
        resolve();
      };
      this.#waiters.add(check);
      signal.addEventListener('abort', check, { once: true });
      this.#stop.signal.addEventListener('abort', check, { once: true });
      check();
    });
  }

  /** Cuts short what still runs: nothing is dispatched any more, and no server works on when the partition is released. */
  async halt(): Promise<void> {
    this.#isHalted = true;
    await this.#unload((session) => session.running > 0);
  }

  /** Resolves with the offset of the release. Rejects if it could not be written. */
  release(): Promise<Offset> {
    return this.#parts.settler.released();
  }

  /** Closes all instances; nothing is written any more. Idempotent. Never rejects. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.stillOwner.stop();
    this.#parts.writer.stop();
    this.#calls.close();
    for (const session of this.#parts.sessions.all()) session.ended = true;
    await this.#unload(() => true);
  }

  async #unload(which: (session: ReturnType<SessionTable['all']>[number]) => boolean): Promise<void> {
    const unloading = this.#parts.sessions
      .all()
      .filter(which)
      .map((session) => session.unload());
    for (const outcome of await Promise.allSettled(unloading)) {
      if (outcome.status === 'rejected')
        this.#parts.context.logger.warn('server instance could not be closed', { error: String(outcome.reason) });
    }
  }

  #onEvent(event: EventRecord, verdict: Verdict): void {
    if (verdict !== 'accepted') return;
    if (event.body.type === 'claimed' && event.offset > this.#options.claim)
      this.#lose('another worker claimed the partition');
    else if (event.body.type === 'attached' && event.body.stream === STANDALONE) this.#server.listening(event);
    this.#noteStray(event);
  }

  #lose(reason: string): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.#options.onLost(reason);
  }

  /** A message that cannot be read ends its stream with an error: whoever sent it may wait for an answer. */
  #takeUnreadable(inbound: InboundRecord, batch: BatchState | null, phase: Phase, fault: string): void {
    const { settler, watch } = this.#parts;
    const { offset: at, key, record } = inbound;
    if (batch !== null) batch.requests++;
    if (phase.kind === 'takeover' && (phase.isPast || watch.since().ledger().get(at)?.ended === true)) {
      if (batch !== null) batch.answered++;
      return;
    }
    this.#toDeadLetters(record, fault);
    const stream = { kind: 'request', at: batch?.first ?? at } as const;
    settler.failUntaken(
      { at, stream, key, batch },
      null,
      wireError('INVALID_REQUEST', `The message cannot be read: ${fault}`),
    );
  }

  #toDeadLetters(record: LogRecord, why: string, topic: 'inbound' | 'events' = 'inbound'): void {
    const { deadLetters, partition } = this.#parts;
    deadLetters.put({ topic, partition }, record, why);
  }

  /** A foreign producer speaks to a session that this partition never had: nobody will ever read it. */
  #noteStray({ owner, body, key, record }: EventRecord): void {
    const { sessions, directory, partition } = this.#parts;
    if (owner !== null || body.type !== 'message') return;
    if (sessions.get(key) !== undefined || directory.get(partition, key) !== undefined) return;
    this.#toDeadLetters(record, 'no session of this key in this partition', 'events');
  }

  #seeBatch(inbound: InboundRecord, member: BatchPlace, isPast: boolean): BatchState {
    const first = inbound.offset - member.index;
    return this.#batches.see(inbound.key, inbound.offset, member, isPast, this.#parts.watch.since().hasEnded(first));
  }

  /**
   * Requests among the members of a batch that retention took: this owner serves the others, and must say so for these,
   * since who follows the stream sees it end. They count as requests of the batch from here on.
   * @param met the record that shows that they are left out.
   */
  #lostOf(batch: BatchState, met: Offset, phase: Phase): readonly LostMember[] {
    const ledger = this.#parts.watch.since().ledger();
    const places = batch.skipped.splice(0);
    if (batch.hasEnded) return [];
    const lost = places.flatMap((place) => {
      const at = batch.first + place;
      const id = batch.ids[place] ?? null;
      // A former owner that took in what came after it has said so.
      const wasTold = phase.kind === 'takeover' && met < phase.takenIn && this.#lost.wasInherited(at);
      if (id === null || wasTold || !this.#lost.has(at) || ledger.get(at)?.ended === true) return [];
      return [{ at, id }];
    });
    batch.requests += lost.length;
    return lost;
  }

  #tellLost(batch: BatchState, lost: readonly LostMember[]): void {
    const { first, key } = batch;
    const stream = { kind: 'request', at: first } as const;
    for (const { at, id } of lost) this.#parts.settler.failUntaken({ at, stream, key, batch }, id, evictedError());
  }

  /** After its last member: if all was answered before, the stream still has to end. */
  #endBatch(batch: BatchState): void {
    if (batch.requests > 0 && isComplete(batch) && !batch.hasEnded && !batch.isPast)
      this.#parts.settler.endBatch(batch);
  }
}

interface LostMember {
  readonly at: Offset;
  readonly id: JsonRpcId;
}

function firstOfBatch(inbound: ReturnType<typeof readInboundRecord>): Offset | null {
  if ('unreadable' in inbound || inbound.body.type !== 'message' || inbound.body.batch === null) return null;
  return inbound.offset - inbound.body.batch.index;
}

function endReason(record: LogRecord): SessionEndReason {
  return readSessionEnd(record)?.reason ?? 'unknown';
}
