/** For tests: a clock that stands until it is moved. Timers run in order of time, then of their setting. */
import type { Clock } from './clock.ts';

export interface ManualClock extends Clock {
  /** Moves time and runs what is due; lets promises settle between timers. */
  advance(ms: number): Promise<void>;
  /** Moves the wall clock alone, as an operator does. */
  setWall(ms: number): void;
  timers(): number;
}

export function createManualClock(wallMs = 1_000_000): ManualClock {
  let monoMs = 0;
  let wall = wallMs;
  let lastId = 0;
  const timers = new Map<number, { readonly atMs: number; readonly run: () => void }>();
  return {
    wallMs: () => wall,
    monoMs: () => monoMs,
    setTimer(ms, run) {
      const id = ++lastId;
      timers.set(id, { atMs: monoMs + ms, run });
      return () => {
        timers.delete(id);
      };
    },
    timers: () => timers.size,
    setWall(ms) {
      wall = ms;
    },
    async advance(ms) {
      const untilMs = monoMs + ms;
      await settle();
      for (;;) {
        const due = [...timers]
          .filter(([, timer]) => timer.atMs <= untilMs)
          .sort(([a, left], [b, right]) => left.atMs - right.atMs || a - b)[0];
        if (due === undefined) break;
        const [id, timer] = due;
        timers.delete(id);
        wall += timer.atMs - monoMs;
        monoMs = timer.atMs;
        timer.run();
        await settle();
      }
      wall += untilMs - monoMs;
      monoMs = untilMs;
    },
  };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}
