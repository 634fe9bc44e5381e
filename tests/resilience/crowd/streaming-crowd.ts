/** Many streaming clients at once: what they got, what is broken, and how long they heard nothing around a fault. */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { longestSilence, spreadOf, timeToRecover } from './recovery.ts';
import type { Spread } from './recovery.ts';
import { StreamingClient } from './streaming-client.ts';
import type { Book, StreamingOptions } from './streaming-client.ts';
import { judgeRuns, noCounts } from './tally.ts';
import type { Counts, Finding } from './tally.ts';

/** Around one fault. */
export interface Watch {
  /** The longest time that each client heard nothing. */
  silence(): Spread;
  /** From `endedAt` (`performance.now()`) until each client received messages again. */
  recoveries(endedAt: number): readonly number[];
  stop(): void;
}

export interface StreamingCrowd {
  readonly counts: Readonly<Counts>;
  readonly clients: readonly StreamingClient[];
  /** Everything that is broken so far; empty if the promises are kept. */
  findings(): readonly Finding[];
  /** Resolves when every client has got `messages` more. Rejects after `deadlineMs` with how many have not. */
  progress(messages: number, deadlineMs: number): Promise<void>;
  /** Begins to note when clients get messages. */
  watch(): Watch;
  /** Ends the calls and waits for what was told; resolves when all have ended. */
  finish(): Promise<void>;
}

const SAMPLE_MS = 20;
/** Of this process: calls of one crowd are not those of the next on the same server. */
let crowds = 0;

/** @param runsFile where the server leaves a line a run. */
export async function startStreamingCrowd(
  count: number,
  options: StreamingOptions,
  runsFile: string,
): Promise<StreamingCrowd> {
  const crowdNumber = ++crowds;
  const book: Book = { counts: noCounts(), findings: [], ends: [] };
  const clients = Array.from(
    { length: count },
    (_, index) => new StreamingClient(`${crowdNumber}c${index}`, options, book),
  );
  const working = clients.map((client) => client.work());
  const runs = (): string[] => (existsSync(runsFile) ? readFileSync(runsFile, 'utf8').split('\n').slice(0, -1) : []);
  const crowd: StreamingCrowd = {
    counts: book.counts,
    clients,
    findings: () => [...book.findings, ...judgeRuns(runs(), book.ends)],
    async progress(messages, deadlineMs) {
      const goals = clients.map((client) => ({ client, goal: client.received() + messages }));
      const late = (): number => goals.filter(({ client, goal }) => client.received() < goal).length;
      const until = performance.now() + deadlineMs;
      while (late() > 0) {
        if (performance.now() > until)
          throw new Error(`${late()} of ${count} clients did not get ${messages} messages within ${deadlineMs} ms`);
        await pause(SAMPLE_MS);
      }
    },
    watch: () => watchArrivals(clients),
    async finish() {
      for (const client of clients) client.stop();
      await Promise.all(working);
    },
  };
  await crowd.progress(3, options.callDeadlineMs);
  return crowd;
}

function watchArrivals(clients: readonly StreamingClient[]): Watch {
  const from = performance.now();
  const watched = clients.map((client) => ({ client, count: client.received(), arrivals: [from] }));
  const sample = (): void => {
    const now = performance.now();
    for (const entry of watched) {
      const received = entry.client.received();
      if (received === entry.count) continue;
      entry.count = received;
      entry.arrivals.push(now);
    }
  };
  const timer = setInterval(sample, SAMPLE_MS);
  return {
    silence() {
      sample();
      const now = performance.now();
      return spreadOf(watched.map(({ arrivals }) => longestSilence(arrivals, from, now)));
    },
    recoveries(endedAt) {
      sample();
      return watched.map(({ arrivals }) => timeToRecover(arrivals, endedAt));
    },
    stop() {
      clearInterval(timer);
    },
  };
}
