/** One life of a simulated process: its clock and chance, and what must be cut off when it dies. */
import type { Clock } from '@throughline/log';
import type { VirtualTime } from '@throughline/testkit';
import { createChance } from './chance.ts';
import type { Chance } from './chance.ts';
import type { Trace } from './trace.ts';

/** What a process waits for. */
export type AwaitKind = 'append' | 'read' | 'membership' | 'request' | 'host';

export interface SimProcess {
  /** Unique to this life. */
  readonly name: string;
  readonly clock: Clock;
  readonly chance: Chance;
  readonly isAlive: () => boolean;
  readonly isPaused: () => boolean;
  /** Gone at once: no timer fires, no promise of its log settles, nothing it holds is told. */
  kill(why: string): void;
  /** Kills it before the `steps`-th of its next steps: between any two awaits. */
  killAfterSteps(steps: number): void;
  /** Calls `strike` at the `count`-th time from now that it is about to hear of something of this kind. */
  strikeAt(kind: AwaitKind, count: number, strike: () => void): void;
  /** Nothing strikes it any more. */
  disarm(): void;
  /** `run` is the process hearing of what it waited for: now, or when it goes on, or never. */
  hears(kind: AwaitKind, run: () => void): void;
  /** Its wall clock jumps; its monotonic one does not. */
  jump(ms: number): void;
  pause(): void;
  resume(): void;
  /** Calls `run` when the process has died. */
  onDeath(run: () => void): void;
}

export interface SimProcessOptions {
  readonly name: string;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly seed: number;
  readonly wallSkewMs: number;
}

export function createSimProcess({ name, time, trace, seed, wallSkewMs }: SimProcessOptions): SimProcess {
  const base = time.clock(name, { wallSkewMs });
  const deaths: (() => void)[] = [];
  let isAlive = true;
  let isPaused = false;
  let jumpedMs = 0;
  let stepsLeft = Number.POSITIVE_INFINITY;
  let armed: { readonly kind: AwaitKind; left: number; readonly strike: () => void } | null = null;
  const kill = (why: string): void => {
    if (!isAlive) return;
    isAlive = false;
    trace.add(name, `dies: ${why}`);
    time.kill(name);
    for (const run of deaths.splice(0)) run();
  };
  return {
    name,
    chance: createChance(seed, name),
    isAlive: () => isAlive,
    isPaused: () => isPaused,
    clock: {
      wallMs: () => base.wallMs() + jumpedMs,
      monoMs: () => base.monoMs(),
      setTimer: (ms, run) =>
        base.setTimer(ms, () => {
          if (--stepsLeft < 0) kill('between two steps');
          else run();
        }),
    },
    kill,
    killAfterSteps(steps) {
      stepsLeft = steps;
    },
    strikeAt(kind, count, strike) {
      armed = { kind, left: count, strike };
    },
    disarm() {
      stepsLeft = Number.POSITIVE_INFINITY;
      armed = null;
    },
    hears(kind, run) {
      if (armed?.kind === kind && --armed.left === 0) {
        const { strike } = armed;
        armed = null;
        strike();
      }
      if (!isAlive) return;
      if (isPaused) base.setTimer(0, run);
      else run();
    },
    jump(ms) {
      jumpedMs += ms;
    },
    pause() {
      if (!isAlive || isPaused) return;
      isPaused = true;
      trace.add(name, 'is paused');
      time.pause(name);
    },
    resume() {
      if (!isAlive || !isPaused) return;
      isPaused = false;
      trace.add(name, 'goes on');
      time.resume(name);
    },
    onDeath(run) {
      deaths.push(run);
    },
  };
}
