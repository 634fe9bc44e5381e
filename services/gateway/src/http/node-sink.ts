/** A {@link ResponseSink} over a Node response: backpressure by `write` and `drain`, safe after the socket has gone. SPEC: GW-SLOW. */
import type { ServerResponse } from 'node:http';
import type { ResponseSink } from '../exchange.ts';

/** @param gone fires when the connection is gone. @param onHead called when the answer begins. */
export function nodeSink(response: ServerResponse, gone: AbortSignal, onHead?: () => void): ResponseSink {
  let ended = false;
  return {
    head(status, headers) {
      onHead?.();
      if (response.headersSent || response.destroyed || ended) return;
      response.writeHead(status, headers);
      if (headers['Content-Type'] === 'text/event-stream') response.flushHeaders();
    },
    write(text) {
      if (ended || gone.aborted || response.destroyed) return true;
      return response.write(text);
    },
    drained(signal) {
      if (ended || gone.aborted || signal.aborted || response.destroyed || !response.writableNeedDrain)
        return Promise.resolve();
      return new Promise((resolve) => {
        const done = (): void => {
          response.off('drain', done);
          gone.removeEventListener('abort', done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        response.on('drain', done);
        gone.addEventListener('abort', done, { once: true });
        signal.addEventListener('abort', done, { once: true });
      });
    },
    end() {
      if (ended) return;
      ended = true;
      if (!response.destroyed) response.end();
    },
  };
}
