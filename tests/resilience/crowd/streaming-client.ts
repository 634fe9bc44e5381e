/**
 * A client that calls and listens without a pause while things fail under the product. It knows what it has to get:
 * every step of every call and every message on its standalone stream, once and in order. What it may be told instead is
 * counted: try again (503), may have run (504), the owner was lost, the session is over (it begins another).
 */
import { setTimeout as pause } from 'node:timers/promises';
import { RawClient } from '@throughline/testkit/processes';
import type { HttpAnswer } from '@throughline/testkit/processes';
import { callToEnd, describeBroken } from './call.ts';
import type { CallOutcome } from './call.ts';
import { Standalone } from './standalone.ts';
import type { CallEnd, Counts, Finding, FindingKind } from './tally.ts';

export interface StreamingOptions {
  readonly url: string;
  /** Of each call. */
  readonly steps: number;
  readonly intervalMs: number;
  /** Longest time that a call may take, faults included; one that takes longer hangs. So does an `initialize`. */
  readonly callDeadlineMs: number;
  /** Default 6 s: well above the keepalive of the gateways. */
  readonly idleMs?: number;
  /** After as many calls the client ends its session and begins another. Default: never. */
  readonly callsPerSession?: number;
}

export interface Book {
  readonly counts: Counts;
  readonly findings: Finding[];
  readonly ends: CallEnd[];
}

/** A gateway waits 20 s for an ack. */
const HEAD_MS = 30_000;
const TELL_POLL_MS = 20;
const CONNECT_PAUSE_MS = 300;

export class StreamingClient {
  readonly #name: string;
  readonly #options: StreamingOptions;
  readonly #book: Book;
  #isEnding = false;
  #sessions = 0;
  #calls = 0;
  /** A call of this session was told that it is over. */
  #isToldOver = false;
  #standalone: Standalone | null = null;
  #answer: HttpAnswer | null = null;
  #earlier = 0;

  constructor(name: string, options: StreamingOptions, book: Book) {
    this.#name = name;
    this.#options = options;
    this.#book = book;
  }

  /** Messages so far, on calls and on standalone streams. */
  received(): number {
    return this.#earlier + (this.#answer?.events().length ?? 0) + (this.#standalone?.received() ?? 0);
  }

  /** Keepalives and events on the standalone stream that is open; -1: none is. */
  aliveOn(): number {
    return this.#standalone?.aliveOn() ?? -1;
  }

  stop(): void {
    this.#isEnding = true;
  }

  /** Calls until `stop`. Never rejects: what is broken is a finding, and the client begins anew. */
  async work(): Promise<void> {
    while (!this.#isEnding) {
      try {
        const wire = await this.#connect();
        if (wire !== null) await this.#useSession(wire);
      } catch (error) {
        const { finding, what } = describeBroken(error);
        this.#find(finding, what);
      }
    }
  }

  async #connect(): Promise<RawClient | null> {
    const { url, callDeadlineMs } = this.#options;
    const until = performance.now() + callDeadlineMs;
    for (let lastError = ''; !this.#isEnding;) {
      try {
        return await RawClient.connect(url, { headMs: HEAD_MS });
      } catch (error) {
        lastError = String(error);
        this.#book.counts.dropped++;
      }
      if (performance.now() > until) throw new Error(`no session in ${callDeadlineMs} ms: ${lastError}`);
      await pause(CONNECT_PAUSE_MS);
    }
    return null;
  }

  async #useSession(wire: RawClient): Promise<void> {
    this.#sessions++;
    this.#isToldOver = false;
    const { counts } = this.#book;
    const { url, idleMs = 6000, callsPerSession = Infinity } = this.#options;
    const standalone = new Standalone(wire, { url, counts, idleMs });
    this.#standalone = standalone;
    let reason: string | null = null;
    let isOver = false;
    const listening = standalone.keepOpen().then(
      (found) => {
        reason = found;
        isOver = true;
      },
      (error: unknown) => {
        isOver = true;
        const { finding, what } = describeBroken(error);
        this.#find(finding, what);
      },
    );
    try {
      for (let call = 0; !isOver && !this.#isEnding && call < callsPerSession; call++) {
        const goesOn = (await this.#countDown(wire)) && (isOver || (await this.#tell(wire, standalone, () => isOver)));
        if (!goesOn) break;
      }
      if (reason !== null || this.#isToldOver) counts.sessionsEnded++;
      else if (callsPerSession !== Infinity) await wire.end(url).catch(() => undefined);
    } finally {
      this.#earlier += standalone.received();
      this.#standalone = null;
      standalone.leave();
      await listening;
    }
  }

  /** Resolves with whether the session goes on. */
  async #countDown(wire: RawClient): Promise<boolean> {
    const { steps, intervalMs } = this.#options;
    const { call, outcome } = await this.#call(wire, 'recorded_countdown', { from: steps, intervalMs });
    if (outcome.kind !== 'result') return outcome.kind === 'owner lost' || outcome.kind === 'unanswered';
    const { progress } = outcome;
    const wanted = Array.from({ length: steps }, (_, index) => index + 1);
    const repeated = progress.filter((step, index) => progress.indexOf(step) !== index);
    if (repeated.length > 0) this.#find('repeated', `${call}: steps ${progress.join()}`);
    else if (progress.join() !== wanted.join()) this.#find('lost', `${call}: steps ${progress.join()}`);
    return true;
  }

  /** What was told before an answer came must be heard, once. */
  async #tell(wire: RawClient, standalone: Standalone, isOver: () => boolean): Promise<boolean> {
    const text = `told://${this.#calls}`;
    const { call, outcome } = await this.#call(wire, 'tell', { text });
    if (outcome.kind !== 'result') return outcome.kind === 'owner lost' || outcome.kind === 'unanswered';
    const until = performance.now() + this.#options.callDeadlineMs;
    for (;;) {
      const times = standalone.texts().filter((heard) => heard === text).length;
      if (times > 1) this.#find('repeated', `${call}: heard ${times} times`);
      if (times > 0 || isOver()) return !isOver();
      if (performance.now() > until) {
        this.#find('lost', `${call}: told, and not heard`);
        return false;
      }
      await pause(TELL_POLL_MS);
    }
  }

  async #call(
    wire: RawClient,
    name: string,
    args: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly call: string; readonly outcome: CallOutcome }> {
    const { url, callDeadlineMs, idleMs = 6000 } = this.#options;
    const { counts, ends } = this.#book;
    const call = `${this.#name}-${this.#sessions}-${++this.#calls}`;
    const outcome = await callToEnd({
      ...{ wire, url, counts, idleMs, name, args: { ...args, call }, deadlineMs: callDeadlineMs },
      onStream: (answer) => {
        this.#earlier += this.#answer?.events().length ?? 0;
        this.#answer = answer;
      },
    });
    counts.calls++;
    ends.push({ call, ended: endOf(outcome) });
    if (outcome.kind === 'owner lost') counts.ownerLost++;
    if (outcome.kind === 'unanswered') counts.unanswered++;
    if (outcome.kind === 'over') this.#isToldOver = true;
    if (outcome.kind === 'broken') this.#find(outcome.finding, `${call}: ${outcome.what}`);
    return { call, outcome };
  }

  #find(kind: FindingKind, what: string): void {
    this.#book.findings.push({ kind, what: `${this.#name}: ${what}` });
  }
}

function endOf(outcome: CallOutcome): CallEnd['ended'] {
  if (outcome.kind === 'result') return 'result';
  return outcome.kind === 'owner lost' && !outcome.mayHaveRun ? 'not run' : 'unknown';
}
