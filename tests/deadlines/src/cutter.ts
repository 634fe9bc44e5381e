/**
 * Counts what a process waits for, and lets one of these waits hang. Which waits there are is found by counting in an
 * undisturbed run, so that a new one is cut without anybody writing it down.
 */
import { LogError } from '@throughline/log';
import type { Clock } from '@throughline/log';

/**
 * How the wait hangs: `lost`: nothing was done, and it never settles, whatever its signal says. `unheard`: it was done,
 * and nobody says so. `until-abort`: as `lost`, but it ends with its signal, if it has one. `late`: it is done, and said,
 * long after everybody gave up. `outage`: it and all that come within the next minute are lost. `for-good`: it and all
 * that come after it are lost.
 */
export const HANGS = ['lost', 'unheard', 'until-abort', 'late', 'outage', 'for-good'] as const;
export type Hang = (typeof HANGS)[number];

export interface Cut {
  /** From 1, in the order in which the waits begin. */
  readonly at: number;
  readonly hang: Hang;
}

export interface Cutter {
  /** Runs `work` as a wait of `process` for `what`, or lets it hang. */
  wait<T>(process: string, what: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** What was waited for, in order. */
  readonly waits: readonly string[];
  hasCome(): boolean;
  /** Resolves when the wait that hangs has begun. */
  readonly came: Promise<void>;
}

const LATE_MS = 100_000;
export const OUTAGE_MS = 60_000;

/** @param clock of the dependencies: what hangs and settles late belongs to no process. */
export function createCutter(clock: Clock, cut: Cut | null): Cutter {
  const waits: string[] = [];
  const came = Promise.withResolvers<undefined>();
  let cutAtMs: number | null = null;
  const hangOf = (number: number): Hang | null => {
    if (cut === null || number < cut.at) return null;
    if (number === cut.at) {
      cutAtMs = clock.monoMs();
      came.resolve(undefined);
      return cut.hang;
    }
    if (cut.hang === 'for-good') return 'lost';
    return cut.hang === 'outage' && clock.monoMs() - (cutAtMs ?? 0) < OUTAGE_MS ? 'lost' : null;
  };
  return {
    waits,
    hasCome: () => cutAtMs !== null,
    came: came.promise,
    wait(process, what, work, signal) {
      const hang = hangOf(waits.push(`${process} ${what}`));
      switch (hang) {
        case null:
          return work();
        case 'lost':
        case 'outage':
        case 'for-good':
          return never();
        case 'unheard':
          work().catch(() => undefined);
          return never();
        case 'until-abort':
          return new Promise((_resolve, reject) => {
            const end = (): void => {
              reject(new LogError('ABORTED', 'cut until its signal'));
            };
            if (signal?.aborted === true) end();
            else signal?.addEventListener('abort', end, { once: true });
          });
        case 'late':
          return new Promise((resolve, reject) => {
            clock.setTimer(LATE_MS, () => {
              work().then(resolve, reject);
            });
          });
      }
    },
  };
}

function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}
