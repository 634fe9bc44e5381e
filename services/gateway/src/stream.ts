/**
 * One SSE connection: writes what the log says of one stream, in log order, each message once, until the stream ends,
 * the client goes, or another connection takes the stream. Nothing is written that was not read back from the log.
 * SPEC: GW-STREAM, GW-KEEPALIVE, GW-REFRESH, GW-SLOW, GW-POISON, GW-LOST, AUTH-EXPIRY.
 */
import { allLostSince, follow, nextNumbering } from '@throughline/history';
import type { Following, Numbering } from '@throughline/history';
import { errorStack } from '@throughline/log';
import {
  anchorChecksum,
  canPrime,
  encodeText,
  errorResponse,
  formatEventId,
  HTTP_HEADER,
  resumptionError,
  streamTag,
  wireError,
} from '@throughline/protocol';
import type { JsonRpcErrorObject, JsonRpcId, Offset } from '@throughline/protocol';
import type { CursorResult, PartitionTail, SessionCursor, TailEvent } from '@throughline/tail';
import { RefusedError } from './answer-error.ts';
import type { Connection } from './connections.ts';
import { endSession } from './context.ts';
import type { GatewayContext, SessionRef } from './context.ts';
import type { ResponseSink } from './exchange.ts';
import { holdsRequest } from './pending-requests.ts';
import { readMessage } from './read-message.ts';
import { formatComment, formatEvent, formatPrimer, formatRetry } from './sse.ts';
import { terminalEvents } from './terminal-events.ts';
import type { TerminalId } from './terminal-events.ts';

export interface StreamOptions {
  readonly session: SessionRef;
  readonly version: string;
  readonly tail: PartitionTail;
  readonly cursor: SessionCursor;
  readonly following: Following;
  readonly numbering: Numbering;
  /**
   * The requests that the stream answers, as far as known, by their offset in `inbound`: an in-band error settles each.
   * `null`: that could not be said; `findPending` is asked again when the stream is quiet.
   */
  readonly pending: ReadonlyMap<Offset, JsonRpcId> | null;
  findPending?(signal: AbortSignal): Promise<ReadonlyMap<Offset, JsonRpcId> | null>;
  readonly sink: ResponseSink;
  /** The client's connection is gone: nothing is written any more. */
  readonly signal: AbortSignal;
  /** This connection can no longer be told apart from a newer one: the client is asked to come back. */
  readonly lost?: AbortSignal;
  /** Gives back the connection's place. */
  leave(): void;
  /** Written before anything else. */
  readonly prelude: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the client can come back where it is: it has an id of this stream, or gets one in the prelude. */
  readonly isResumable: boolean;
  /** Events read already, before the head was sent. */
  readonly first?: CursorResult;
}

const LOOK_AT_TOKEN_MS = 3600_000;
/** See `mcp-app.ts`: without a reason an abort makes an error with a stack. */
const STOPPED = 'the stream ends';

const SSE_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

/** Head of every SSE answer. */
export function sseHead(
  context: GatewayContext,
  session: SessionRef,
  extra: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    ...SSE_HEADERS,
    [HTTP_HEADER.sessionId]: session.text,
    [HTTP_HEADER.replayEpoch]: context.current().epoch,
    ...extra,
  };
}

/** Clients add no jitter of their own: all of them would come back at once. */
export function jitteredRetryMs({ config, random }: GatewayContext): number {
  return config.retryMs * (0.75 + random.unit() / 2);
}

export class SseStream implements Connection {
  readonly #context: GatewayContext;
  readonly #options: StreamOptions;
  readonly #stop = new AbortController();
  readonly #tag: Uint8Array;
  readonly #requestId: JsonRpcId | undefined;
  readonly #epoch: string;
  #pending: ReadonlyMap<Offset, JsonRpcId> | null;
  #following: Following;
  #numbering: Numbering;
  #isResumable: boolean;
  #drain: 'no' | 'when-resumable' | 'now' = 'no';
  #lastWriteMs = 0;
  #lastIdMs = 0;
  #buffer = '';
  /** Of a request stream; `null`: not known. */
  #isRequestHeld: boolean | null = null;

  constructor(context: GatewayContext, options: StreamOptions) {
    this.#context = context;
    this.#options = options;
    this.#following = options.following;
    this.#numbering = options.numbering;
    this.#isResumable = options.isResumable;
    this.#pending = options.pending;
    this.#tag = streamTag(options.session.text, options.following.stream);
    this.#requestId = options.pending?.size === 1 ? options.pending.get(options.following.stream.at) : undefined;
    this.#epoch = options.session.id.epoch;
  }

  /** Runs the connection to its end; resolves with the status. Never rejects. */
  async run(): Promise<number> {
    const { context, options } = { context: this.#context, options: this.#options };
    const remove = context.connections.add(this);
    const forgetToken = this.#endWithToken();
    const onGone = (): void => {
      this.#stop.abort(STOPPED);
    };
    const ends = options.lost === undefined ? [options.signal] : [options.signal, options.lost];
    for (const signal of ends) {
      signal.addEventListener('abort', onGone, { once: true });
      if (signal.aborted) onGone();
    }
    try {
      options.sink.head(200, sseHead(context, options.session, options.headers));
      this.#lastWriteMs = this.#lastIdMs = context.clock.monoMs();
      for (const text of options.prelude) this.#buffer += text;
      // With events at hand it goes out with them.
      if (options.first === undefined) await this.#flush();
      await this.#pump();
    } catch (error) {
      context.logger.error('stream failed', {
        partition: options.tail.partition,
        error: errorStack(error),
      });
    } finally {
      for (const signal of ends) signal.removeEventListener('abort', onGone);
      options.sink.end();
      remove();
      forgetToken();
      options.leave();
    }
    return 200;
  }

  /**
   * When its token is refused, the connection ends as in a drain, so that the client comes back where it was with
   * another token. A call was allowed when it was made: by default its stream goes on to the answer, since there are
   * clients that lose their cursor over a 401 (docs/adr/0015-streams-whose-token-expires.md).
   */
  #endWithToken(): () => void {
    const { clock, config, metrics } = this.#context;
    const { untilMs, revoked } = this.#options.session;
    const isCall = this.#following.stream.kind === 'request';
    if (config.expiredStreams === 'keep' || (isCall && config.expiredStreams === 'finish-calls'))
      return () => undefined;
    let cancel = (): void => undefined;
    const wait = (): void => {
      const leftMs = revoked?.aborted === true ? 0 : (untilMs ?? Infinity) - clock.wallMs();
      // Looked at each hour: the wall clock may be set.
      if (leftMs > 0) {
        cancel = clock.setTimer(Math.min(leftMs, LOOK_AT_TOKEN_MS), wait);
        return;
      }
      metrics.add('throughline_gateway_expired_streams_total');
      this.closeForDrain(isCall ? 'when-resumable' : 'now');
    };
    const onRevoked = (): void => {
      cancel();
      wait();
    };
    revoked?.addEventListener('abort', onRevoked, { once: true });
    if (untilMs !== null || revoked?.aborted === true) wait();
    return () => {
      cancel();
      revoked?.removeEventListener('abort', onRevoked);
    };
  }

  closeForDrain(when: 'when-resumable' | 'now'): void {
    if (this.#drain !== 'now') this.#drain = when;
    if (when === 'now' || this.#isResumable) this.#stop.abort(STOPPED);
  }

  async #pump(): Promise<void> {
    const { cursor, first } = this.#options;
    let result = first;
    for (;;) {
      // Whatever its former owners said of it comes first.
      const lostSince = result === undefined ? this.#lostSince() : null;
      if (lostSince !== null && cursor.position() >= lostSince) return this.#failLost(NOBODY_SERVED);
      result ??= await cursor.next(this.#stop.signal, this.#silenceLeftMs());
      let go: boolean;
      switch (result.kind) {
        case 'events':
          go = await this.#take(result.events);
          break;
        case 'idle':
          go = await this.#breakSilence();
          break;
        case 'gap':
          go = await this.#refuseGap(result.start, result.end);
          break;
        case 'stopped':
          go = await this.#stopped();
          break;
      }
      if (!go) return;
      result = undefined;
    }
  }

  /** Takes events in log order; `false` when the connection is over. */
  async #take(events: readonly TailEvent[]): Promise<boolean> {
    for (const event of events) {
      const [following, step] = follow(this.#following, event.event);
      this.#following = following;
      switch (step.do) {
        case 'skip':
          continue;
        case 'deliver':
          if (!this.#deliver(event)) break;
          if (!step.end) {
            if (this.#buffer.length > FLUSH_LENGTH) await this.#flush();
            if (this.#stop.signal.aborted) return this.#stopped();
            continue;
          }
          this.#failUnanswered();
          break;
        case 'live':
          this.#meetOwnAttachment(event);
          continue;
        case 'close':
          // A client without an id could not come back for the rest.
          if (!this.#isResumable) continue;
          this.#buffer += formatRetry(jitteredRetryMs(this.#context));
          break;
        case 'superseded':
          this.#buffer += formatComment('superseded by a newer connection');
          break;
        case 'session-ended':
          this.#failPending(resumptionError({ reason: 'session-ended', requested: '' }), event.event.offset);
          break;
        case 'finish':
          this.#failUnanswered();
          break;
      }
      await this.#flush();
      return false;
    }
    // In catch-up the next read brings more at once; few events a read would be a system call each.
    if (!this.#options.cursor.isBehind()) await this.#flush();
    return true;
  }

  /** Writes a message; `false` if it cannot be read and its stream is over. */
  #deliver(tailEvent: TailEvent): boolean {
    const { event } = tailEvent;
    const data = readMessage(event);
    if (data === null) {
      const { partition } = this.#options.session.id;
      this.#context.logger.warn('a record holds no JSON-RPC message', { partition, offset: event.offset });
      const text = `The record at offset ${event.offset} holds no JSON-RPC message`;
      const error = wireError('INTERNAL', text, { mayHaveRun: true });
      if (this.#following.stream.kind === 'request') {
        this.#failPending(error, event.offset);
        return false;
      }
      // A standalone stream goes on: what stands in for the message is the same on every replica, so are number and chain.
      this.#write(tailEvent, JSON.stringify(errorResponse(null, error)));
      return true;
    }
    this.#write(tailEvent, data);
    if (event.body.type === 'message' && event.body.answers !== null) this.#settle(event.body.answers);
    return true;
  }

  #settle(answered: Offset): void {
    if (this.#pending !== null) this.#pending = new Map([...this.#pending].filter(([offset]) => offset !== answered));
  }

  #write(event: TailEvent, data: string): void {
    this.#numbering = nextNumbering(this.#numbering, encodeText(data));
    this.#buffer += formatEvent(this.#id(event.event.offset, event.checksum()), data);
    this.#idSent();
    this.#context.metrics.add('throughline_gateway_events_total');
  }

  /** The client can come back: what waited for that may happen. */
  #idSent(): void {
    this.#isResumable = true;
    this.#lastIdMs = this.#context.clock.monoMs();
    if (this.#drain === 'when-resumable') this.#stop.abort(STOPPED);
  }

  /** The border between replayed and live. From here the client's cursor may move on to this connection's own attachment. */
  #meetOwnAttachment(event: TailEvent): void {
    const id = this.#id(event.event.offset, event.checksum());
    this.#buffer += formatComment(`live ${id}`);
    if (canPrime(this.#options.version)) this.#moveCursor(id);
  }

  #moveCursor(id: string): void {
    this.#buffer += formatPrimer(id, jitteredRetryMs(this.#context));
    this.#idSent();
  }

  /** Until something must be said though nothing has happened. */
  #silenceLeftMs(): number {
    if (this.#buffer !== '') return GATHER_MS;
    const { clock, config } = this.#context;
    const keepAliveAtMs = this.#lastWriteMs + config.keepAliveMs;
    const refreshAtMs = canPrime(this.#options.version) ? this.#lastIdMs + config.refreshMs : Infinity;
    return Math.max(0, Math.min(keepAliveAtMs, refreshAtMs) - clock.monoMs());
  }

  async #breakSilence(): Promise<boolean> {
    const { clock, config } = this.#context;
    const now = clock.monoMs();
    if (canPrime(this.#options.version) && now >= this.#lastIdMs + config.refreshMs) {
      // An id without data keeps an idle client's cursor ahead of retention; only what this connection has passed may be named.
      const passed = this.#options.cursor.passed();
      if (passed !== null) this.#moveCursor(this.#id(passed.offset, anchorChecksum(passed)));
      this.#lastIdMs = now;
    }
    if (now >= this.#lastWriteMs + config.keepAliveMs && this.#buffer === '')
      this.#buffer += formatComment('keepalive');
    await this.#flush();
    this.#pending ??= (await this.#options.findPending?.(this.#stop.signal)) ?? null;
    const { stream } = this.#following;
    if (stream.kind !== 'request') return true;
    this.#context.guard.lookAgain(this.#options.tail.partition);
    this.#isRequestHeld ??= await holdsRequest(this.#context, this.#options.session, stream.at, this.#stop.signal);
    if (this.#isRequestHeld !== false) return true;
    await this.#failLost('The log holds another message where the request was: its history was cut');
    return false;
  }

  /** From which position of `events` on it is certain that nothing more comes on this stream; `null` if that is not so. */
  #lostSince(): Offset | null {
    const { stream } = this.#following;
    // Of a batch that is not known others may wait, and be answered.
    if (stream.kind !== 'request' || this.#pending === null) return null;
    return allLostSince(this.#options.tail.lost(), this.#pending.size === 0 ? [stream.at] : this.#pending.keys());
  }

  /**
   * The stream of a batch is over, and some of it was not answered: retention took it, and the owner, which knew no ids
   * of it, served the rest. Only the connection that posted the batch knows for sure what was not answered.
   */
  #failUnanswered(): void {
    const { following, pending } = this.#options;
    if (following.attachment !== null || (pending?.size ?? 0) < 2 || this.#pending?.size === 0) return;
    this.#failPending(wireError('OWNER_LOST', NOBODY_SERVED, { mayHaveRun: true }));
  }

  /** Nobody will answer. The request may have run: before the log lost it, or if it was sent before as well. */
  async #failLost(text: string): Promise<void> {
    this.#failPending(wireError('OWNER_LOST', text, { mayHaveRun: true }));
    await this.#flush();
  }

  /** Retention has passed this connection: the same decision as at the start of a resume, told in-band. */
  async #refuseGap(start: number, end: number): Promise<boolean> {
    const { session } = this.#options;
    try {
      await endSession(this.#context, session, 'resumption-rejected');
    } catch (error) {
      // Not told before it is recorded: the client comes back and is refused then.
      if (!(error instanceof RefusedError)) throw error;
      this.#buffer += formatRetry(jitteredRetryMs(this.#context));
      await this.#flush();
      return false;
    }
    this.#context.metrics.add('throughline_gateway_resumes_total', 1, { outcome: 'gap' });
    const available = { epoch: this.#epoch, start, end };
    this.#failPending(
      resumptionError({
        reason: 'gap',
        requested: `${session.id.partition}.${this.#options.cursor.position()}`,
        available,
      }),
    );
    await this.#flush();
    return false;
  }

  /** The last words when this side ends the connection. */
  async #stopped(): Promise<boolean> {
    const { epoch } = this.#context.current();
    if (this.#options.signal.aborted) return false;
    if (epoch !== this.#epoch) {
      this.#failPending(resumptionError({ reason: 'epoch-mismatch', requested: '', available: { epoch } }));
    } else if (this.#isResumable) {
      this.#buffer += formatRetry(jitteredRetryMs(this.#context));
    } else {
      this.#failPending(
        wireError('APPEND_UNKNOWN', 'This gateway stopped before the answer came: the call may run', {
          mayHaveRun: true,
        }),
      );
    }
    await this.#flush();
    return false;
  }

  /** @param offset what its ids name: the record that says so, if there is one. */
  #failPending(error: JsonRpcErrorObject, offset = this.#options.cursor.position()): void {
    if (this.#following.stream.kind !== 'request') return;
    this.#buffer += terminalEvents(this.#terminalId(offset), [...(this.#pending?.values() ?? [])], error);
  }

  #terminalId(offset: Offset): TerminalId {
    const { session, following } = this.#options;
    return {
      epoch: this.#epoch,
      partition: session.id.partition,
      offset,
      stream: following.stream,
      tag: this.#tag,
    };
  }

  #id(offset: number, crc: number): string {
    const { session, following } = this.#options;
    return formatEventId({
      epoch: this.#epoch,
      partition: session.id.partition,
      offset,
      stream: following.stream,
      ...(this.#requestId === undefined ? {} : { requestId: this.#requestId }),
      seq: this.#numbering.seq,
      tag: this.#tag,
      crc,
      chain: this.#numbering.chain,
    });
  }

  async #flush(): Promise<void> {
    const { sink, signal } = this.#options;
    const text = this.#buffer;
    this.#buffer = '';
    if (text === '' || signal.aborted) return;
    this.#lastWriteMs = this.#context.clock.monoMs();
    if (!sink.write(text)) await sink.drained(this.#stop.signal);
  }
}

const NOBODY_SERVED = 'No worker served the request while the log held it';
/** Longest time that events of a catch-up wait for those of the next read. */
const GATHER_MS = 100;
/** Characters that wait to be written at most, beside the last event. */
const FLUSH_LENGTH = 64 * 1024;
