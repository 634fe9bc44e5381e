/**
 * The living sessions of one host, and what holds for the sessions of every host: nothing is called back after `close`,
 * `onGone` comes at most once and not before `open` has resolved, a session that is gone or whose signal aborts is closed.
 * SPEC: HOST-GONE-ONCE, HOST-SIGNAL.
 */
import { HostError } from './host.ts';
import type { HostCallbacks, HostContext, HostSession } from './host.ts';

export interface SessionSet {
  /**
   * Starts a session and keeps it until it is closed. `start` gets the callbacks to use. Rejects with `HOST_GONE` if the
   * set is closed or the signal aborts meanwhile, else as `start` does.
   */
  open(
    context: HostContext,
    callbacks: HostCallbacks,
    start: (guarded: HostCallbacks) => Promise<HostSession>,
  ): Promise<HostSession>;
  /** Closes every session and refuses new ones. Idempotent. */
  close(): Promise<void>;
}

export function createSessionSet(): SessionSet {
  const living = new Set<HostSession>();
  let isSetClosed = false;

  return {
    async open(context, callbacks, start) {
      if (isSetClosed) throw new HostError('HOST_GONE', 'the host is closed');
      let isClosed = false;
      let gone: readonly [reason: string, details?: string | undefined] | undefined;
      let hasResolved = false;

      const inner = await start({
        onMessage: (message, related) => (isClosed ? Promise.resolve() : callbacks.onMessage(message, related)),
        onCloseStream(related) {
          if (!isClosed) callbacks.onCloseStream(related);
        },
        onGone(...what) {
          if (isClosed || gone !== undefined) return;
          gone = what;
          if (hasResolved) announce(what);
        },
      });

      let closing: Promise<void> | undefined;
      const onAbort = (): void => {
        void kept.close();
      };
      const kept: HostSession = {
        ...inner,
        close() {
          isClosed = true;
          closing ??= inner.close().finally(() => {
            context.signal.removeEventListener('abort', onAbort);
            living.delete(kept);
          });
          return closing;
        },
      };
      living.add(kept);
      context.signal.addEventListener('abort', onAbort, { once: true });
      // Read through the object: both may have changed while `start` was awaited.
      if (isSetClosed || context.signal.aborted) {
        await kept.close();
        throw new HostError('HOST_GONE', 'the session ended while its server was starting');
      }
      const announce = (what: readonly [reason: string, details?: string | undefined]): void => {
        if (isClosed) return;
        callbacks.onGone(...what);
        void kept.close();
      };
      hasResolved = true;
      // The caller first gets its session.
      if (gone !== undefined) setImmediate(announce, gone);
      return kept;
    },
    async close() {
      isSetClosed = true;
      await Promise.allSettled([...living].map((session) => session.close()));
    },
  };
}
