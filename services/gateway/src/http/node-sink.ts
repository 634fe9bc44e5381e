/** A {@link ResponseSink} over a Node response: backpressure by `write` and `drain`, safe after the socket has gone. SPEC: GW-SLOW. */
import type { ServerResponse } from 'node:http';
import process from 'node:process';
import type { ResponseSink } from '../exchange.ts';

/** @param gone fires when the connection is gone. @param onHead called when the answer begins. */
export function nodeSink(response: ServerResponse, gone: AbortSignal, onHead?: () => void): ResponseSink {
  let ended = false;
  // What is written in one turn, the head and the end included, is one system call: the dearest part of a short stream.
  let turn: string | null = null;
  const flush = (): boolean => {
    const text = turn;
    turn = null;
    if (ended || text === null || response.destroyed) return true;
    if (text !== '') return response.write(text);
    response.flushHeaders();
    return true;
  };
  const begin = (): void => {
    if (turn !== null) return;
    turn = '';
    process.nextTick(flush);
  };
  return {
    head(status, headers) {
      onHead?.();
      if (response.headersSent || response.destroyed || ended) return;
      response.writeHead(status, headers);
      if (headers['Content-Type'] === 'text/event-stream') begin();
    },
    write(text) {
      if (ended || gone.aborted || response.destroyed) return true;
      begin();
      turn = (turn ?? '') + text;
      if (response.writableLength + turn.length < response.writableHighWaterMark) return true;
      return flush();
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
      const text = turn;
      ended = true;
      turn = null;
      if (!response.destroyed) response.end(text ?? '');
    },
  };
}
