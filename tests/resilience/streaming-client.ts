/**
 * A client that calls and listens without a pause while the brokers under the product fail. It knows what it has to get:
 * every step of every call and every message on its standalone stream, once and in order. What it may be told instead is
 * counted: try again (503), may have run (504), the owner was lost.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { checkStream, describeAnswer, RawClient, within } from '@throughline/testkit/processes';
import type { HttpAnswer, SseItem } from '@throughline/testkit/processes';

export interface Counts {
  /** Calls that ended with their result. */
  calls: number;
  /** Answers 503, each with Retry-After. */
  refused: number;
  /** Answers 504 that say `mayHaveRun`; the same request is sent again, and its one run answers it. */
  mayHaveRun: number;
  /** Calls that ended with `OWNER_LOST`, which says whether they may have run. */
  ownerLost: number;
  /** Standalone streams that had to be asked for again. */
  relistened: number;
  /** Milliseconds until a POST was answered, at most. */
  longestHeadMs: number;
}

export interface StreamingOptions {
  readonly url: string;
  /** Of each call. */
  readonly steps: number;
  readonly intervalMs: number;
  /** Longest time that a call may take, faults included; one that takes longer hangs. */
  readonly callDeadlineMs: number;
  readonly counts: Counts;
}

interface Outcome {
  readonly progress: readonly number[];
  readonly result: boolean;
  readonly error: { readonly code?: unknown; readonly mayHaveRun?: unknown } | null;
}

export class StreamingClient {
  readonly #raw: RawClient;
  readonly #options: StreamingOptions;
  readonly #ending = new AbortController();
  readonly #told: string[] = [];
  /** All of the standalone stream, over however many connections. */
  readonly #heard: SseItem[] = [];
  #listening: HttpAnswer | null = null;
  #answer: HttpAnswer | null = null;
  #earlier = 0;

  private constructor(raw: RawClient, options: StreamingOptions) {
    this.#raw = raw;
    this.#options = options;
  }

  static async connect(options: StreamingOptions): Promise<StreamingClient> {
    const client = new StreamingClient(await RawClient.connect(options.url), options);
    client.#listening = await client.#raw.listen(options.url);
    // Without an id it could not come back.
    await client.#listening.until('an id of the standalone stream', ({ id }) => id !== undefined);
    return client;
  }

  /** Messages so far, on calls and on the standalone stream. */
  received(): number {
    return this.#earlier + (this.#answer?.events().length ?? 0) + (this.#listening?.events().length ?? 0);
  }

  /** Keepalives and events on the standalone stream that is open; -1: none is. */
  aliveOn(): number {
    return this.#listening?.items.length ?? -1;
  }

  /** Calls until `stop`. Rejects at the first broken promise. */
  async work(): Promise<void> {
    const listening = this.#listen();
    listening.catch(() => undefined);
    try {
      for (let call = 0; !this.#ending.signal.aborted; call++) {
        await Promise.race([this.#countDown(), listening]);
        const text = `told ${call}`;
        const told = await this.#call('notify_later', { text, ms: 1 });
        // Known not to have come to its end: it may have told it, or not.
        if (told.result) this.#told.push(text);
        else this.#loseOwner(told);
      }
      await this.#hearAll();
    } finally {
      this.#ending.abort();
      this.#listening?.cut();
    }
    await listening;
  }

  stop(): void {
    this.#ending.abort();
  }

  async #countDown(): Promise<void> {
    const { steps, intervalMs, counts } = this.#options;
    const outcome = await this.#call('countdown', { from: steps, intervalMs });
    const expected = outcome.progress.map((_, index) => index + 1);
    if (outcome.progress.join() !== expected.join()) throw new Error(`steps ${outcome.progress.join()}`);
    if (!outcome.result) this.#loseOwner(outcome);
    else if (outcome.progress.length !== steps) throw new Error(`${outcome.progress.length} of ${steps} steps`);
    else counts.calls++;
  }

  #loseOwner({ error }: Outcome): void {
    if (error?.code !== 'OWNER_LOST' || typeof error.mayHaveRun !== 'boolean')
      throw new Error(`a call failed otherwise: ${JSON.stringify(error)}`);
    this.#options.counts.ownerLost++;
  }

  async #call(name: string, args: Readonly<Record<string, unknown>>): Promise<Outcome> {
    const id = this.#raw.nextId();
    return await within(`call ${id} of ${name}`, this.#settle(id, name, args), this.#options.callDeadlineMs);
  }

  /** One call to its end, over as many answers as it takes. */
  async #settle(id: number, name: string, args: Readonly<Record<string, unknown>>): Promise<Outcome> {
    const { url, counts } = this.#options;
    let items: SseItem[] = [];
    const post = async (): Promise<HttpAnswer> => {
      const startedAt = performance.now();
      const answer = await this.#raw.callTool(url, name, args, id);
      counts.longestHeadMs = Math.max(counts.longestHeadMs, performance.now() - startedAt);
      return answer;
    };
    let answer = await post();
    for (;;) {
      if (answer.status === 503 || answer.status === 504) {
        await this.#waitAsTold(answer);
      } else {
        if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
        this.#answer = answer;
        await answer.closed;
        this.#earlier += answer.events().length;
        this.#answer = null;
        items.push(...answer.items);
        if (items.some(({ data }) => data.includes('"result"') || data.includes('"error"'))) break;
      }
      const cursor = items.findLast(({ id: eventId }) => eventId !== undefined)?.id;
      if (cursor === undefined) {
        items = [];
        answer = await post();
      } else answer = await this.#raw.resume(url, cursor);
    }
    const messages = checkStream(this.#raw.sessionId, items).map(
      ({ data }) =>
        JSON.parse(data) as { params?: { progress: number }; result?: object; error?: { data: Outcome['error'] } },
    );
    const last = messages.at(-1);
    return {
      progress: messages.flatMap(({ params }) => (params === undefined ? [] : [params.progress])),
      result: last?.result !== undefined,
      error: last?.error?.data ?? null,
    };
  }

  /** 503 says when to try again; 504 says that the request may run. */
  async #waitAsTold(answer: HttpAnswer): Promise<void> {
    const { counts } = this.#options;
    const body = await answer.text();
    if (answer.status === 504) {
      if (!body.includes('"mayHaveRun":true')) throw new Error(`504 without mayHaveRun: ${body}`);
      counts.mayHaveRun++;
      return;
    }
    const seconds = Number(answer.headers['retry-after']);
    if (!(seconds >= 0)) throw new Error(`503 without Retry-After: ${body}`);
    counts.refused++;
    await pause(seconds * 1000);
  }

  /** Keeps the standalone stream open until the end. */
  async #listen(): Promise<void> {
    const { url, counts } = this.#options;
    while (!this.#ending.signal.aborted) {
      if (this.#listening !== null) {
        await this.#listening.closed;
        this.#earlier += this.#listening.events().length;
        this.#heard.push(...this.#listening.items);
        this.#listening = null;
        continue;
      }
      counts.relistened++;
      const cursor = this.#heard.findLast(({ id }) => id !== undefined)?.id ?? '';
      const answer = await this.#raw.resume(url, cursor);
      if (answer.status === 200) this.#listening = answer;
      else if (answer.status === 503) await this.#waitAsTold(answer);
      else throw new Error(`the standalone stream: ${describeAnswer(answer)} ${await answer.text()}`);
    }
  }

  /** Everything that was told has come, once and in order, under ids that count without a gap. */
  async #hearAll(): Promise<void> {
    const texts = (): string[] =>
      checkStream(this.#raw.sessionId, [...this.#heard, ...(this.#listening?.items ?? [])]).map(
        ({ data }) => (JSON.parse(data) as { params: { data: string } }).params.data,
      );
    const until = performance.now() + this.#options.callDeadlineMs;
    for (;;) {
      const heard = texts();
      if (new Set(heard).size !== heard.length) throw new Error(`told twice: ${heard.join()}`);
      if (this.#told.every((text) => heard.includes(text))) return;
      if (performance.now() > until) throw new Error(`told ${this.#told.join()}, heard ${heard.join()}`);
      await pause(50);
    }
  }
}
