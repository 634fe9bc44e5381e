/** One SSE stream of the faulty server: what was said on it, and the connection that has it now. */
import type { JsonRpcId, JsonRpcMessage, StreamLabel } from '@throughline/protocol';
import { formatStreamLabel } from '@throughline/protocol';
import type { StreamNumbering } from './numbering.ts';
import type { SseConnection } from './sse-connection.ts';
import type { StreamEvent } from './sse-text.ts';

/** Beyond it a script of one's own has run away. */
const MAX_EVENTS = 10_000;

export class ScriptedStream {
  readonly label: StreamLabel;
  readonly numbering: StreamNumbering;
  /** The request that the stream answers. */
  readonly requestId: JsonRpcId | undefined;
  readonly events: StreamEvent[] = [];
  /** Ids without data that were given out, and after how many events. */
  readonly #places = new Map<string, number>();
  #connection: SseConnection | null = null;
  #isFinished = false;
  readonly #finished = Promise.withResolvers<undefined>();

  constructor(label: StreamLabel, numbering: StreamNumbering, requestId?: JsonRpcId) {
    this.label = label;
    this.numbering = numbering;
    this.requestId = requestId;
  }

  get name(): string {
    return formatStreamLabel(this.label);
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** Resolves when nothing more will be said. */
  whenFinished(): Promise<undefined> {
    return this.#finished.promise;
  }

  get connection(): SseConnection | null {
    return this.#connection;
  }

  /** Adds a message. Whether it reaches anybody is the matter of whoever sends it. */
  add(message: JsonRpcMessage): StreamEvent {
    if (this.events.length >= MAX_EVENTS) throw new Error(`stream ${this.name} holds ${MAX_EVENTS} events already`);
    const data = JSON.stringify(message);
    const event = { id: this.numbering.next(data), data };
    this.events.push(event);
    return event;
  }

  /** An id without data for the place that the stream has reached; it can be resumed at. */
  markPlace(): string {
    const id = this.numbering.here();
    this.#places.set(id, this.events.length);
    return id;
  }

  /** How many events a client with this cursor has; `null` if the cursor is not one of this stream. */
  countUpTo(lastEventId: string): number | null {
    const place = this.#places.get(lastEventId);
    if (place !== undefined) return place;
    const index = this.events.findIndex(({ id }) => id === lastEventId);
    return index < 0 ? null : index + 1;
  }

  /** The newest connection has the stream; the one before is closed. */
  attach(connection: SseConnection): void {
    const former = this.#connection;
    this.#connection = connection;
    if (former !== null && former !== connection) former.end();
    connection.onClosed(() => {
      if (this.#connection === connection) this.#connection = null;
    });
  }

  /** Whoever is connected gets no more of it. */
  detach(): SseConnection | null {
    const connection = this.#connection;
    this.#connection = null;
    return connection;
  }

  /** Nothing more will be said. */
  finish(): void {
    this.#isFinished = true;
    this.#finished.resolve(undefined);
    this.detach()?.end();
  }
}
