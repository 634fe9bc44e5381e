/** Many streaming clients at once: waits for all of them, and how long the longest of them heard nothing. */
import { setTimeout as pause } from 'node:timers/promises';
import { StreamingClient } from './streaming-client.ts';
import type { Counts, StreamingOptions } from './streaming-client.ts';

export interface Silence {
  readonly p50Ms: number;
  readonly worstMs: number;
}

export interface StreamingCrowd {
  readonly counts: Readonly<Counts>;
  /** What was lost, repeated, out of order or hung; empty if the promises are kept. */
  readonly failures: readonly unknown[];
  readonly clients: readonly StreamingClient[];
  /** Resolves when every client has got `messages` more, or something failed. Rejects after `deadlineMs`. */
  progress(messages: number, deadlineMs: number): Promise<void>;
  /** Begins to measure the longest time without a message, client by client; what it returns ends it. */
  watchSilence(): () => Silence;
  /** Ends the calls and checks the standalone streams; resolves when all have ended. */
  finish(): Promise<void>;
}

const SAMPLE_MS = 20;

export async function startStreamingCrowd(
  count: number,
  options: Omit<StreamingOptions, 'counts'>,
): Promise<StreamingCrowd> {
  const counts: Counts = { calls: 0, refused: 0, mayHaveRun: 0, ownerLost: 0, relistened: 0, longestHeadMs: 0 };
  const failures: unknown[] = [];
  const clients = await Promise.all(
    Array.from({ length: count }, () => StreamingClient.connect({ ...options, counts })),
  );
  const working = clients.map((client) => client.work().catch((error: unknown) => failures.push(error)));
  return {
    counts,
    failures,
    clients,
    async progress(messages, deadlineMs) {
      const goals = clients.map((client) => ({ client, goal: client.received() + messages }));
      const late = (): number => goals.filter(({ client, goal }) => client.received() < goal).length;
      const until = performance.now() + deadlineMs;
      while (failures.length === 0 && late() > 0) {
        if (performance.now() > until)
          throw new Error(`${late()} of ${count} clients did not get ${messages} messages within ${deadlineMs} ms`);
        await pause(SAMPLE_MS);
      }
    },
    watchSilence() {
      const watched = clients.map((client) => ({
        client,
        count: client.received(),
        sinceMs: performance.now(),
        longestMs: 0,
      }));
      const sample = (): void => {
        const now = performance.now();
        for (const entry of watched) {
          entry.longestMs = Math.max(entry.longestMs, now - entry.sinceMs);
          const received = entry.client.received();
          if (received !== entry.count) Object.assign(entry, { count: received, sinceMs: now });
        }
      };
      const timer = setInterval(sample, SAMPLE_MS);
      return () => {
        sample();
        clearInterval(timer);
        const sorted = watched.map(({ longestMs }) => Math.round(longestMs)).sort((a, b) => a - b);
        return { p50Ms: sorted[sorted.length >> 1] ?? 0, worstMs: sorted.at(-1) ?? 0 };
      };
    },
    async finish() {
      for (const client of clients) client.stop();
      await Promise.all(working);
    },
  };
}
