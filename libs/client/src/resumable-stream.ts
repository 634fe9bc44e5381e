/**
 * One stream of a session over however many connections: opened by a POST or a GET, read, judged, and opened again at
 * its cursor, until it is answered, refused, or out of reach for too long. SPEC: CLIENT-RESUME, CLIENT-BOUND, CLIENT-REPEAT.
 */
import { chooseNumbering } from './choose-numbering.ts';
import { ResumptionRejected, TransportError } from './client-errors.ts';
import { discard, headOf, statusError } from './http-exchange.ts';
import type { ExchangeRequest } from './http-exchange.ts';
import { isTemporary, judgeAnswer, judgeNames, mediaType } from './judge-answer.ts';
import { judgeEvent } from './judge-event.ts';
import type { Settings } from './options.ts';
import { readEvents, readText } from './read-events.ts';
import { readRefusal } from './read-refusal.ts';
import type { ReadOptions, SseItem } from './read-events.ts';
import { reconnectDelay } from './reconnect-delay.ts';
import type { StreamCheckpoint } from './stream-checkpoint.ts';
import type { Fact, Numbering, Rejected } from './verdict.ts';
import { pause } from './wait.ts';

/** What a stream needs of its session. */
export interface StreamHost {
  readonly settings: Settings;
  /** `null` before the first id of the session. */
  numbering(): Numbering | null;
  fixNumbering(numbering: Numbering): void;
  /** Whether the server is known to send keepalives. */
  sendsKeepAlives(): boolean;
  keepAliveSeen(): void;
  request(request: Omit<ExchangeRequest, 'sessionId' | 'protocolVersion'>): Promise<Response>;
  /** The head of the first answer: session and epoch may be new. */
  nameSession(head: { readonly sessionId: string | null; readonly epoch: string | null }): StreamIdentity;
  /** Hands a message over. Resolves when its handler has returned. */
  handle(data: string, from: MessageOrigin): Promise<HandlingOutcome>;
  /** The checkpoint has moved. */
  progressed(): void;
  unproven(stream: ResumableStream, eventId: string | null, facts: readonly Fact[]): void;
  /** Trouble that is met by trying again. */
  report(error: TransportError): void;
}

export type StreamIdentity = Pick<StreamCheckpoint, 'sessionId' | 'epoch'>;

export interface MessageOrigin {
  readonly stream: ResumableStream;
  readonly eventId: string | null;
  readonly isReplayed: boolean | null;
}

/** `answered`: it was the answer that the stream is for. */
export type HandlingOutcome = 'answered' | 'go-on' | Rejected;

export interface Posting {
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Whether the same request may be posted again though the first may have been taken. */
  isRepeatable(): boolean;
}

export type StreamEnd =
  | { readonly kind: 'answered' | 'stopped' }
  /** The server says that nothing follows; of a standalone stream that it offers none. */
  | { readonly kind: 'finished'; readonly mayHaveRun: boolean }
  | { readonly kind: 'failed'; readonly error: TransportError; readonly mayHaveRun: boolean }
  /** An HTTP error in answer to a POST, which concerns this message alone. */
  | { readonly kind: 'refused'; readonly error: TransportError; readonly text: string; readonly mayHaveRun: boolean }
  | { readonly kind: 'rejected'; readonly error: ResumptionRejected; readonly mayHaveRun: boolean };

/** What came of one connection: the end of the stream, or nothing yet. */
type Connection = StreamEnd | { readonly kind: 'again'; readonly error: TransportError | null };

export class ResumableStream {
  readonly #host: StreamHost;
  readonly #posting: Posting | null;
  readonly #stop = new AbortController();
  #checkpoint: StreamCheckpoint;
  /** Whether the request was sent without a word that it was not taken. */
  #mayHaveRun: boolean;
  #attempt = 0;
  #retryMs: number | null = null;
  #heardAtMs = performance.now();
  #progressAtMs = performance.now();
  #hasListened = false;

  constructor(host: StreamHost, checkpoint: StreamCheckpoint, posting: Posting | null) {
    this.#host = host;
    this.#checkpoint = checkpoint;
    this.#posting = posting;
    this.#mayHaveRun = posting === null;
  }

  get checkpoint(): StreamCheckpoint {
    return this.#checkpoint;
  }

  get mayHaveRun(): boolean {
    return this.#mayHaveRun;
  }

  /** Ends it without a word to the server. */
  stop(): void {
    this.#stop.abort();
  }

  /** Runs the stream to its end. Never rejects. */
  async run(): Promise<StreamEnd> {
    for (;;) {
      if (this.#stop.signal.aborted) return { kind: 'stopped' };
      const began = performance.now();
      const end = await this.#connect().catch((error: unknown) => this.#again(error));
      if (this.#stop.signal.aborted) return { kind: 'stopped' };
      if (end.kind !== 'again') return end;
      const error = end.error ?? new TransportError('NO_ANSWER', 'The connection ended before the answer came');
      if (performance.now() - began >= this.#host.settings.maxDelayMs && this.#heardAtMs > began) this.#progress();
      if (!this.#mayGoOn()) return { kind: 'failed', error, mayHaveRun: this.#mayHaveRun };
      const inMs = this.#delay(error);
      error.retry = { attempt: this.#attempt, inMs: Math.round(inMs) };
      if (end.error !== null) this.#host.report(error);
      await pause(inMs, this.#stop.signal);
    }
  }

  #again(error: unknown): Connection {
    if (error instanceof TransportError) return { kind: 'again', error };
    // What the user's own functions throw, for instance.
    return {
      kind: 'again',
      error: new TransportError('UNREACHABLE', 'The request could not be made', { cause: error }),
    };
  }

  /** Whether there is a way to go on, and time for it. A standalone stream is opened again for as long as it is wanted. */
  #mayGoOn(): boolean {
    const { giveUpMs, quietMs } = this.#host.settings;
    if (this.#checkpoint.kind === 'standalone') return true;
    const now = performance.now();
    if (now - this.#heardAtMs > giveUpMs || now - this.#progressAtMs > Math.max(giveUpMs, quietMs)) return false;
    if (this.#checkpoint.lastEventId !== null || !this.#mayHaveRun) return true;
    return this.#posting?.isRepeatable() === true;
  }

  #delay({ retryAfterMs }: TransportError): number {
    const { initialDelayMs, maxDelayMs, random } = this.#host.settings;
    const attempt = this.#attempt++;
    return reconnectDelay({
      attempt,
      retryMs: this.#retryMs,
      retryAfterMs,
      initialDelayMs,
      maxDelayMs,
      unit: random(),
    });
  }

  #progress(): void {
    this.#attempt = 0;
    this.#progressAtMs = performance.now();
  }

  async #connect(): Promise<Connection> {
    if (this.#checkpoint.lastEventId !== null) return await this.#resume(this.#checkpoint.lastEventId);
    return this.#posting === null ? await this.#listen() : await this.#post(this.#posting);
  }

  async #resume(lastEventId: string): Promise<Connection> {
    const answer = await this.#get(lastEventId);
    const verdict = judgeAnswer(this.#checkpoint, headOf(answer));
    switch (verdict.do) {
      case 'read':
        return await this.#read(answer, { isResumed: true, proved: verdict.proved });
      case 'finished':
        discard(answer);
        return this.#finished();
      case 'retry':
        discard(answer);
        throw statusError(answer, answer.ok ? ' with something that is no event stream' : '');
      case 'reject': {
        if (answer.ok) discard(answer);
        const told = answer.ok ? null : readRefusal(await this.#text(answer).catch(() => ''));
        return this.#rejected(told ?? verdict);
      }
    }
  }

  /** A standalone stream without a cursor: a new one. */
  async #listen(): Promise<Connection> {
    const answer = await this.#get(null);
    const head = headOf(answer);
    const isRefused = head.status >= 400 && head.status < 500 && this.#checkpoint.sessionId === null;
    if (head.status === 405 || head.status === 501 || isRefused) {
      discard(answer);
      return this.#finished();
    }
    if ((head.status === 404 || head.status === 410) && this.#checkpoint.sessionId !== null) {
      discard(answer);
      return this.#rejected({ do: 'reject', reason: 'session-invalid', detail: `the server answered ${head.status}` });
    }
    if (!answer.ok || mediaType(head.contentType) !== 'text/event-stream') {
      discard(answer);
      throw statusError(answer);
    }
    // What the server said between the two is not known.
    if (this.#hasListened) this.#host.unproven(this, null, ['sequence']);
    this.#hasListened = true;
    return await this.#readFirst(answer);
  }

  #get(lastEventId: string | null): Promise<Response> {
    const timeoutMs = this.#host.settings.connectTimeoutMs;
    return this.#host.request({ method: 'GET', lastEventId, timeoutMs, signal: this.#stop.signal });
  }

  async #post({ body, headers }: Posting): Promise<Connection> {
    const { settings } = this.#host;
    // A server that answers in JSON says nothing until its tool is done.
    const isPatient = this.#checkpoint.sessionId !== null && this.#host.numbering() !== 'chained';
    const timeoutMs = isPatient ? settings.quietMs : settings.connectTimeoutMs;
    const hadRun = this.#mayHaveRun;
    this.#mayHaveRun = true;
    const request = { method: 'POST', body, headers, timeoutMs, signal: this.#stop.signal } as const;
    const answer = await this.#host.request(request).catch((error: unknown) => {
      // Whoever is not let in, or never came as far as the door, has not run anything.
      if (error instanceof TransportError && (error.code === 'CREDENTIALS' || error.wasUnsent))
        this.#mayHaveRun = hadRun;
      throw error;
    });
    const { status } = answer;
    if (status === 429 || status === 503) {
      // It says that it was not taken.
      this.#mayHaveRun = hadRun;
      discard(answer);
      throw statusError(answer);
    }
    if (status === 502 || status === 504) {
      const text = await this.#text(answer).catch(() => '');
      if (this.#posting?.isRepeatable() === true) throw statusError(answer);
      return { kind: 'refused', error: statusError(answer), text, mayHaveRun: true };
    }
    if (!answer.ok) {
      this.#mayHaveRun = hadRun || isTemporary(status);
      const text = await this.#text(answer).catch(() => '');
      const { sessionId } = this.#checkpoint;
      if ((status === 404 || status === 410) && sessionId !== null)
        return this.#rejected({ do: 'reject', reason: 'session-invalid', detail: `the server answered ${status}` });
      return { kind: 'refused', error: statusError(answer), text, mayHaveRun: this.#mayHaveRun };
    }
    const type = mediaType(answer.headers.get('content-type'));
    if (type === 'application/json') return await this.#readJson(answer);
    if (type === 'text/event-stream') return await this.#readFirst(answer);
    discard(answer);
    if (status === 202 || status === 204) return this.#finished();
    throw new TransportError('NOT_MCP', `The server answered with ${type === '' ? 'no content type' : type}`);
  }

  /** The answer that opens the stream: nothing is to be proved but that it is of this session. */
  async #readFirst(answer: Response): Promise<Connection> {
    return this.#nameBy(answer) ?? (await this.#read(answer, { isResumed: false, proved: [] }));
  }

  async #readJson(answer: Response): Promise<Connection> {
    const changed = this.#nameBy(answer);
    if (changed !== null) return changed;
    const origin = { stream: this, eventId: null, isReplayed: false };
    const outcome = await this.#host.handle(await this.#text(answer), origin);
    if (outcome === 'answered') return { kind: 'answered' };
    return outcome === 'go-on' ? this.#finished() : this.#rejected(outcome);
  }

  /** Takes the names of session and epoch from the head of an answer; a rejection if they are others than before. */
  #nameBy(answer: Response): StreamEnd | null {
    const head = headOf(answer);
    const changed = judgeNames(this.#checkpoint, head);
    if (changed !== null) {
      discard(answer);
      return this.#rejected(changed);
    }
    this.#checkpoint = { ...this.#checkpoint, ...this.#host.nameSession(head) };
    return null;
  }

  async #read(
    answer: Response,
    facts: { readonly isResumed: boolean; readonly proved: readonly Fact[] },
  ): Promise<Connection> {
    if (answer.body === null) return { kind: 'again', error: null };
    let end: Connection | null = null;
    let isReplayed: boolean | null = facts.isResumed ? null : false;
    let isTold = false;
    let asksBack = false;
    const onItem = async (item: SseItem): Promise<boolean> => {
      this.#heardAtMs = performance.now();
      switch (item.kind) {
        case 'retry':
          this.#retryMs = item.ms;
          asksBack = true;
          return true;
        case 'comment':
          if (item.text === 'replay') isReplayed = true;
          else if (item.text.startsWith('live ')) isReplayed = false;
          else this.#host.keepAliveSeen();
          return true;
        case 'event':
          break;
      }
      const event = { id: isHeaderSafe(item.id) ? item.id : null, data: item.data };
      if (event.id === null && event.data === '') return true;
      const { settings } = this.#host;
      const verdict = judgeEvent(this.#checkpoint, event, this.#numberingFor(event.id), facts, settings.policy);
      switch (verdict.do) {
        case 'reject':
          end = this.#rejected(verdict);
          return false;
        case 'drop':
          return true;
        case 'advance':
          this.#checkpoint = verdict.next;
          this.#host.progressed();
          return true;
        case 'deliver':
          break;
      }
      if (verdict.unproven.length > 0 && !isTold) {
        isTold = true;
        this.#host.unproven(this, event.id, verdict.unproven);
      }
      const outcome = await this.#host.handle(event.data, { stream: this, eventId: event.id, isReplayed });
      if (typeof outcome === 'object') {
        end = this.#rejected(outcome);
        return false;
      }
      this.#checkpoint = verdict.next;
      this.#progress();
      this.#host.progressed();
      if (outcome === 'answered') end = { kind: 'answered' };
      return outcome !== 'answered';
    };
    try {
      await readEvents(answer.body, onItem, this.#readOptions());
    } finally {
      // A server that closes to be polled is not one that fails.
      if (asksBack) this.#attempt = 0;
    }
    return end ?? { kind: 'again', error: null };
  }

  #numberingFor(id: string | null): Numbering {
    const known = this.#host.numbering();
    if (known !== null || id === null) return known ?? 'opaque';
    const { eventIds } = this.#host.settings;
    const numbering = chooseNumbering(id, { eventIds, epoch: this.#checkpoint.epoch });
    this.#host.fixNumbering(numbering);
    return numbering;
  }

  async #text(answer: Response): Promise<string> {
    return await readText(answer.body, this.#readOptions());
  }

  #readOptions(): ReadOptions {
    const { silenceMs, quietMs, maxEventChars } = this.#host.settings;
    return {
      silenceMs: () => (this.#host.sendsKeepAlives() ? silenceMs : quietMs),
      maxEventChars,
      signal: this.#stop.signal,
    };
  }

  #finished(): StreamEnd {
    return { kind: 'finished', mayHaveRun: this.#mayHaveRun };
  }

  #rejected({ reason, detail }: Rejected): StreamEnd {
    const error = new ResumptionRejected(reason, detail, this.#checkpoint);
    return { kind: 'rejected', error, mayHaveRun: this.#mayHaveRun };
  }
}

/** An id that cannot be sent back in a header is no cursor. */
function isHeaderSafe(id: string | null): boolean {
  return id !== null && /^[\x21-\x7e]+$/.test(id);
}
