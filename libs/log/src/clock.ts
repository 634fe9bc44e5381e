/** Time and chance as arguments: simulation runs the shipped code under its own. */
import { LogError } from './errors.ts';

export interface Clock {
  /** Milliseconds since the Unix epoch; may jump. For timestamps only. */
  wallMs(): number;
  /** Milliseconds since an arbitrary start; never goes back. For deadlines and leases. */
  monoMs(): number;
  /** Calls `run` once after `ms`; returns the way to cancel it. Never keeps a process alive by itself unless `run` is awaited through {@link sleep}. */
  setTimer(ms: number, run: () => void): () => void;
}

export interface Random {
  bytes(count: number): Uint8Array;
  /** Uniform in [0, 1). */
  unit(): number;
}

/** Resolves `true` after `ms`, or `false` at once when `signal` aborts. Never rejects. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve(false);
      return;
    }
    const onAbort = (): void => {
      cancel();
      resolve(false);
    };
    const cancel = clock.setTimer(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve(true);
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Without one each abort makes an error with a stack, though nobody asks for it. */
const REASON = 'the deadline has passed, or the caller gave up';

/** An abort signal that fires after `ms` on this clock or with `signal`; `dispose` frees timer and listener. */
export function deadline(
  clock: Clock,
  ms: number,
  signal?: AbortSignal,
): { readonly signal: AbortSignal; readonly expired: () => boolean; dispose(): void } {
  const controller = new AbortController();
  let expired = false;
  const onAbort = (): void => {
    controller.abort(REASON);
  };
  const cancel = clock.setTimer(ms, () => {
    expired = true;
    controller.abort(REASON);
  });
  if (signal?.aborted) controller.abort(REASON);
  else signal?.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    expired: () => expired,
    dispose() {
      cancel();
      signal?.removeEventListener('abort', onAbort);
    },
  };
}

/** `work`, or `ABORTED` when `signal` fires first, whatever `work` waits for; what it rejects with after that is nobody's. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(new LogError('ABORTED', 'the wait was aborted'));
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    work
      .finally(() => {
        signal.removeEventListener('abort', onAbort);
      })
      .then(resolve, reject);
  });
}
