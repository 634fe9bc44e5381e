/**
 * One SSE connection: writes what the log says of one stream, in log order, each message once, until the stream ends,
 * the client goes, or another connection takes the stream. Nothing is written that was not read back from the log.
 * SPEC: GW-STREAM, GW-KEEPALIVE, GW-REFRESH, GW-SLOW.
 */
import { follow, nextNumbering } from '@throughline/history';
import type { Following, Numbering } from '@throughline/history';
import {
  anchorChecksum,
  canPrime,
  decodeText,
  encodeText,
  errorResponse,
  formatEventId,
  HTTP_HEADER,
  resumptionError,
  streamTag,
  wireError,
} from '@throughline/protocol';
import type { JsonRpcErrorObject, JsonRpcId, LogRecord, StreamLabel } from '@throughline/protocol';
import type { CursorResult, PartitionTail, SessionCursor, TailEvent } from '@throughline/tail';
import { endSession } from './context.ts';
import type { GatewayContext, SessionRef } from './context.ts';
import type { ResponseSink } from './exchange.ts';
import { formatComment, formatEvent, formatPrimer, formatRetry, normalizeData } from './sse.ts';

export interface StreamOptions {
  readonly session: SessionRef;
  readonly version: string;
  readonly tail: PartitionTail;
  readonly cursor: SessionCursor;
  readonly following: Following;
  readonly numbering: Numbering;
  /** The requests that the stream answers, as far as known: an in-band error settles each. */
  readonly pending: readonly JsonRpcId[];
  readonly sink: ResponseSink;
  /** The client's connection is gone. */
  readonly signal: AbortSignal;
  /** Written before anything else. */
  readonly prelude: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether an id was sent in the prelude. */
  readonly primed: boolean;
  /** Events read already, before the head was sent. */
  readonly first?: CursorResult;
}

export const SSE_HEADERS = {
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

export class SseStream {
  readonly #context: GatewayContext;
  readonly #options: StreamOptions;
  readonly #stop = new AbortController();
  readonly #tag: Uint8Array;
  readonly #requestId: JsonRpcId | undefined;
  readonly #epoch: string;
  #following: Following;
  #numbering: Numbering;
  #resumable: boolean;
  #draining = false;
  #lastWriteMs = 0;
  #lastIdMs = 0;
  #buffer = '';

  constructor(context: GatewayContext, options: StreamOptions) {
    this.#context = context;
    this.#options = options;
    this.#following = options.following;
    this.#numbering = options.numbering;
    this.#resumable = options.primed;
    this.#tag = streamTag(options.session.text, options.following.stream);
    this.#requestId = options.pending.length === 1 ? options.pending[0] : undefined;
    this.#epoch = options.session.id.epoch;
  }

  /** Runs the connection to its end. Never rejects. */
  async run(): Promise<void> {
    const { context, options } = { context: this.#context, options: this.#options };
    const remove = context.connections.add({
      isResumable: () => this.#resumable,
      closeForDrain: () => {
        this.#draining = true;
        this.#stop.abort();
      },
    });
    const onGone = (): void => {
      this.#stop.abort();
    };
    options.signal.addEventListener('abort', onGone, { once: true });
    if (options.signal.aborted) onGone();
    try {
      options.sink.head(200, sseHead(context, options.session, options.headers));
      this.#lastWriteMs = this.#lastIdMs = context.clock.monoMs();
      for (const text of options.prelude) this.#buffer += text;
      await this.#flush();
      await this.#pump();
    } catch (error) {
      context.logger.error('stream failed', {
        partition: options.tail.partition,
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
    } finally {
      options.signal.removeEventListener('abort', onGone);
      remove();
      options.sink.end();
    }
  }

  async #pump(): Promise<void> {
    const { cursor, first } = this.#options;
    const { clock, config } = this.#context;
    let result = first;
    for (;;) {
      result ??= await cursor.next(
        this.#stop.signal,
        Math.max(0, this.#lastWriteMs + config.keepAliveMs - clock.monoMs()),
      );
      let go: boolean;
      switch (result.kind) {
        case 'events':
          go = await this.#take(result.events);
          break;
        case 'idle':
          go = await this.#keepAlive();
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
          this.#deliver(event);
          if (!step.end) {
            if (this.#buffer.length > FLUSH_LENGTH) await this.#flush();
            if (this.#stop.signal.aborted) return this.#stopped();
            continue;
          }
          break;
        case 'live':
          this.#meetOwnAttachment(event);
          continue;
        case 'close':
          this.#buffer += formatRetry(this.#retryMs());
          break;
        case 'superseded':
          this.#buffer += formatComment('superseded by a newer connection');
          break;
        case 'session-ended':
          this.#failPending(resumptionError({ reason: 'session-ended', requested: '' }));
          break;
        case 'finish':
          break;
      }
      await this.#flush();
      return false;
    }
    await this.#flush();
    return true;
  }

  #deliver(tailEvent: TailEvent): void {
    const { event } = tailEvent;
    const data = normalizeData(readableData(event.record, event.owner !== null));
    this.#numbering = nextNumbering(this.#numbering, encodeText(data));
    this.#buffer += formatEvent(this.#id(event.offset, tailEvent.checksum()), data);
    this.#resumable = true;
    this.#lastIdMs = this.#context.clock.monoMs();
    this.#context.metrics.add('throughline_gateway_events_total');
  }

  /** The border between replayed and live. From here the client's cursor may move on to this connection's own attachment. */
  #meetOwnAttachment(event: TailEvent): void {
    const id = this.#id(event.event.offset, event.checksum());
    this.#buffer += formatComment(`live ${id}`);
    if (canPrime(this.#options.version)) this.#moveCursor(id);
  }

  #moveCursor(id: string): void {
    this.#buffer += formatPrimer(id, this.#retryMs());
    this.#resumable = true;
    this.#lastIdMs = this.#context.clock.monoMs();
  }

  async #keepAlive(): Promise<boolean> {
    const { clock, config } = this.#context;
    const passed = this.#options.cursor.passed();
    // An id without data keeps an idle client's cursor ahead of retention; only what this connection has passed may be named.
    if (passed !== null && canPrime(this.#options.version) && clock.monoMs() - this.#lastIdMs >= config.refreshMs) {
      this.#moveCursor(this.#id(passed.offset, anchorChecksum(passed)));
    } else {
      this.#buffer += formatComment('keepalive');
    }
    await this.#flush();
    return true;
  }

  /** Retention has passed this connection: the same decision as at the start of a resume, told in-band. */
  async #refuseGap(start: number, end: number): Promise<boolean> {
    const { session } = this.#options;
    this.#context.metrics.add('throughline_gateway_resumes_total', 1, { outcome: 'gap' });
    await endSession(this.#context, session, 'resumption-rejected');
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

  async #stopped(): Promise<boolean> {
    if (this.#options.signal.aborted) return false;
    if (this.#draining) {
      this.#buffer += formatRetry(this.#retryMs());
    } else if (this.#context.current().epoch !== this.#epoch) {
      this.#failPending(
        resumptionError({
          reason: 'epoch-mismatch',
          requested: '',
          available: { epoch: this.#context.current().epoch },
        }),
      );
    }
    await this.#flush();
    return false;
  }

  #failPending(error: JsonRpcErrorObject): void {
    const { following, pending } = this.#options;
    if (following.stream.kind !== 'request') return;
    this.#buffer += terminalEvents(this.#idParts(), pending, error);
  }

  #idParts(): TerminalId {
    const { session, cursor, following } = this.#options;
    return {
      epoch: this.#epoch,
      partition: session.id.partition,
      offset: cursor.position(),
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

  /** Clients add no jitter of their own: all of them would come back at once. */
  #retryMs(): number {
    const { config, random } = this.#context;
    return config.retryMs * (0.75 + random.unit() / 2);
  }

  async #flush(): Promise<void> {
    if (this.#buffer === '') return;
    const text = this.#buffer;
    this.#buffer = '';
    this.#lastWriteMs = this.#context.clock.monoMs();
    if (!this.#options.sink.write(text)) await this.#options.sink.drained();
  }
}

const FLUSH_LENGTH = 64 * 1024;

interface TerminalId {
  readonly epoch: string;
  readonly partition: number;
  readonly offset: number;
  readonly stream: StreamLabel;
  readonly tag: Uint8Array;
}

const NO_CHAIN = new Uint8Array(8);

/** Errors that the gateway makes itself: one a pending request, under ids that end with `end`, so that resuming them gets 204. */
export function terminalEvents(id: TerminalId, pending: readonly JsonRpcId[], error: JsonRpcErrorObject): string {
  const eventId = formatEventId({ ...id, seq: 'end', crc: 0, chain: NO_CHAIN });
  const ids = pending.length === 0 ? [null] : pending;
  return ids.map((requestId) => formatEvent(eventId, JSON.stringify(errorResponse(requestId, error)))).join('');
}

/**
 * The payload of a message. What an owner wrote is JSON by construction; what a foreign producer wrote is checked, and
 * replaced by an error that says so, the same on every replica.
 */
function readableData(record: LogRecord, owned: boolean): string {
  const text = record.value === null ? '' : decodeText(record.value);
  if (owned) return text;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return text;
  } catch {
    // Falls through to the replacement.
  }
  return JSON.stringify(
    errorResponse(null, wireError('INTERNAL', `The record at offset ${record.offset} holds no JSON-RPC message`)),
  );
}
