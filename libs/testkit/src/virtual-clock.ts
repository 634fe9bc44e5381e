/**
 * Virtual time for several processes in one: timers run in the order of (time, seeded tie-break, sequence), one at a
 * time, with all promises settled in between. The same seed and the same program give the same run.
 */
import type { Clock } from '@throughline/log';
import { createSeededRandom } from './seeded-random.ts';
import type { SeededRandom } from './seeded-random.ts';

export interface VirtualTimeOptions {
  readonly seed: number;
  /** Wall clock at virtual time 0, in milliseconds since the Unix epoch. Default: 2026-01-01. */
  readonly startWallMs?: number;
}

export interface VirtualTime {
  readonly seed: number;
  /** Chance of the run; draws from it are part of the run. */
  readonly random: SeededRandom;
  /** Virtual milliseconds since the start. */
  nowMs(): number;
  /** The clock of a process. All processes share the time; `wallSkewMs` shifts one's wall clock (default 0). */
  clock(process?: string, options?: { readonly wallSkewMs?: number }): Clock;
  /** Lets all promises that can settle without time passing settle. */
  settle(): Promise<void>;
  /** Runs what is due within `ms`, then the time is `ms` later. */
  advance(ms: number): Promise<void>;
  /**
   * Runs until `isDone()`. Throws if it is not after `limitMs` of virtual time (default: 1 h), or if nothing is left
   * that could make it so.
   */
  runUntil(isDone: () => boolean, limitMs?: number): Promise<void>;
  /** Runs until `work` has settled and returns its outcome. Throws as {@link runUntil} does. */
  run<T>(work: Promise<T>, limitMs?: number): Promise<T>;
  /** Timers of `process` wait until {@link resume}; its time goes on, as when a process is stopped by a signal. */
  pause(process: string): void;
  resume(process: string): void;
  /** Timers of `process` never run, nor does it get new ones. A restarted process has another name. */
  kill(process: string): void;
  /** Timers that wait to run, those of paused processes included. */
  pending(): number;
}

interface Timer {
  at: number;
  readonly tie: number;
  readonly sequence: number;
  readonly process: string;
  readonly run: () => void;
  isCancelled: boolean;
}

const DEFAULT_WALL_MS = Date.UTC(2026, 0, 1);
const DEFAULT_LIMIT_MS = 3600_000;
/** Immediates asked for at once. */
const STEPS_A_TURN = 128;

export function createVirtualTime({ seed, startWallMs = DEFAULT_WALL_MS }: VirtualTimeOptions): VirtualTime {
  const random = createSeededRandom(seed);
  // Ties have a chance of their own: a draw of the program must not depend on how many timers there were.
  const ties = createSeededRandom(seed ^ 0x5bd1e995);
  const heap: Timer[] = [];
  const held = new Map<string, Timer[]>();
  const killed = new Set<string>();
  let now = 0;
  let sequence = 0;
  let isDriven = false;

  const clock = (process = '', { wallSkewMs = 0 } = {}): Clock => ({
    wallMs: () => startWallMs + Math.floor(now) + wallSkewMs,
    monoMs: () => now,
    setTimer(ms, run) {
      const at = now + Math.max(0, ms);
      const timer = { at, tie: ties.unit(), sequence: sequence++, process, run, isCancelled: false };
      if (!killed.has(process)) push(heap, timer);
      return () => {
        timer.isCancelled = true;
      };
    },
  });

  /** The next timer at or before `until` that may run now, taken out. */
  const take = (until: number): Timer | null => {
    for (;;) {
      const [first] = heap;
      if (first === undefined || first.at > until) return null;
      pop(heap);
      if (first.isCancelled || killed.has(first.process)) continue;
      const waiting = held.get(first.process);
      if (waiting === undefined) return first;
      waiting.push(first);
    }
  };

  /**
   * Runs what is due by `until`, one timer at a time with all promises settled in between, until `isOver()` says so
   * before one of them. Resolves with whether it was that which ended it.
   *
   * Promises settle between two immediates, and many immediates share one turn of the event loop: turns cost more than
   * most timers of a simulation do, so they are taken many at a time.
   */
  const runTimers = (until: number, isOver: () => boolean): Promise<boolean> =>
    new Promise((resolve, reject) => {
      // The first would run far ahead of what the second means to do in between.
      if (isDriven) throw new Error('virtual time is driven already: wait for that before the next');
      isDriven = true;
      let waiting: NodeJS.Immediate[] = [];
      let next = 0;
      const end = (settle: () => void): void => {
        isDriven = false;
        for (const each of waiting.slice(next)) clearImmediate(each);
        settle();
      };
      const one = (): void => {
        next++;
        try {
          const isDone = isOver();
          const timer = isDone ? null : take(until);
          if (timer === null) {
            end(() => {
              resolve(isDone);
            });
            return;
          }
          now = Math.max(now, timer.at);
          timer.run();
        } catch (error) {
          end(() => {
            reject(error instanceof Error ? error : new Error(String(error)));
          });
          return;
        }
        if (next === waiting.length) turn();
      };
      const turn = (): void => {
        next = 0;
        waiting = Array.from({ length: STEPS_A_TURN }, () => setImmediate(one));
      };
      turn();
    });

  const runUntil = async (isDone: () => boolean, limitMs = DEFAULT_LIMIT_MS): Promise<void> => {
    if (await runTimers(now + limitMs, isDone)) return;
    throw new Error(
      heap.length === 0
        ? `nothing is left to run at ${now} ms (seed ${seed})`
        : `not done after ${limitMs} ms of virtual time (seed ${seed})`,
    );
  };

  return {
    seed,
    random,
    nowMs: () => now,
    clock,
    settle,
    async advance(ms) {
      const until = now + ms;
      await runTimers(until, () => false);
      now = until;
    },
    runUntil,
    async run(work, limitMs) {
      let isSettled = false;
      const settled = (): void => {
        isSettled = true;
      };
      work.then(settled, settled);
      await runUntil(() => isSettled, limitMs);
      return work;
    },
    pause(process) {
      if (!held.has(process)) held.set(process, []);
    },
    resume(process) {
      const waiting = held.get(process) ?? [];
      held.delete(process);
      for (const timer of waiting) push(heap, timer);
    },
    kill(process) {
      killed.add(process);
      held.delete(process);
    },
    pending() {
      const isLive = (timer: Timer): boolean => !timer.isCancelled && !killed.has(timer.process);
      return [heap, ...held.values()].reduce((sum, timers) => sum + timers.filter(isLive).length, 0);
    },
  };
}

/** Promises and `process.nextTick` run dry before an immediate runs. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function isBefore(a: Timer, b: Timer): boolean {
  if (a.at !== b.at) return a.at < b.at;
  if (a.tie !== b.tie) return a.tie < b.tie;
  return a.sequence < b.sequence;
}

function push(heap: Timer[], timer: Timer): void {
  let index = heap.push(timer) - 1;
  while (index > 0) {
    const parentIndex = (index - 1) >> 1;
    const parent = heap[parentIndex];
    if (parent === undefined || !isBefore(timer, parent)) break;
    heap[index] = parent;
    index = parentIndex;
  }
  heap[index] = timer;
}

function pop(heap: Timer[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let index = 0;
  for (;;) {
    let childIndex = 2 * index + 1;
    let child = heap[childIndex];
    const right = heap[childIndex + 1];
    if (child !== undefined && right !== undefined && isBefore(right, child)) {
      child = right;
      childIndex++;
    }
    if (child === undefined || !isBefore(child, last)) break;
    heap[index] = child;
    index = childIndex;
  }
  heap[index] = last;
}
