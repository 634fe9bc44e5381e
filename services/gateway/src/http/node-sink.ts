/** A {@link ResponseSink} over a Node response: backpressure by `write` and `drain`, safe after the socket has gone. */
import type { ServerResponse } from 'node:http';
import type { ResponseSink } from '../exchange.ts';

export function nodeSink(response: ServerResponse, signal: AbortSignal): ResponseSink {
  let ended = false;
  return {
    head(status, headers) {
      if (response.headersSent || ended) return;
      response.writeHead(status, headers);
      if (headers['Content-Type'] === 'text/event-stream') response.flushHeaders();
    },
    write(text) {
      if (ended || response.destroyed) return true;
      return response.write(text);
    },
    drained() {
      if (ended || response.destroyed || signal.aborted || !response.writableNeedDrain) return Promise.resolve();
      return new Promise((resolve) => {
        const done = (): void => {
          response.off('drain', done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        response.on('drain', done);
        signal.addEventListener('abort', done, { once: true });
      });
    },
    end() {
      if (ended) return;
      ended = true;
      response.end();
    },
  };
}
