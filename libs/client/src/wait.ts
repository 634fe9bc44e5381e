/** Waits that end: by time, or by a signal. SPEC: CLIENT-BOUND. */

/** Resolves after `ms`, or at once when `signal` fires. Never rejects. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { once: true });
  });
}

/** `work`; rejects with what `late` makes after `ms`, and with the reason of `signal` when that fires. */
export function within<T>(work: Promise<T>, ms: number, late: () => Error, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      end();
      reject(signal?.reason instanceof Error ? signal.reason : new Error('stopped'));
    };
    const timer = setTimeout(() => {
      end();
      reject(late());
    }, ms);
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    work.then(
      (value) => {
        end();
        resolve(value);
      },
      (error: unknown) => {
        end();
        reject(error instanceof Error ? error : new Error('failed', { cause: error }));
      },
    );
  });
}

/** `work`; rejects with the reason of `signal` when that fires first. For waits that have their own bound. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => {
    reject(signal.reason instanceof Error ? signal.reason : new Error('stopped'));
  };
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  return Promise.race([work, promise]).finally(() => {
    signal.removeEventListener('abort', onAbort);
  });
}
