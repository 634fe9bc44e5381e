/** A {@link ResponseSink} over a Node response: backpressure by `write` and `drain`, safe after the socket has gone. SPEC: GW-SLOW. */
import type { ServerResponse } from 'node:http';
import process from 'node:process';
import type { ResponseSink } from '../exchange.ts';

/** A class, not closures: there is one for as long as each stream lasts. */
export class NodeSink implements ResponseSink {
  readonly #response: ServerResponse;
  readonly #gone: AbortSignal;
  #onHead: (() => void) | undefined;
  #ended = false;
  /** What is written in one turn, the head and the end included, is one system call: the dearest part of a short stream. */
  #turn: string | null = null;

  /** @param gone fires when the connection is gone. @param onHead called once, when the answer begins. */
  constructor(response: ServerResponse, gone: AbortSignal, onHead?: () => void) {
    this.#response = response;
    this.#gone = gone;
    this.#onHead = onHead;
  }

  head(status: number, headers: Readonly<Record<string, string>>): void {
    const response = this.#response;
    this.#onHead?.();
    this.#onHead = undefined;
    if (response.headersSent || response.destroyed || this.#ended) return;
    response.writeHead(status, headers);
    if (headers['Content-Type'] === 'text/event-stream') this.#begin();
  }

  write(text: string): boolean {
    const response = this.#response;
    if (this.#ended || this.#gone.aborted || response.destroyed) return true;
    this.#begin();
    this.#turn = (this.#turn ?? '') + text;
    if (response.writableLength + this.#turn.length < response.writableHighWaterMark) return true;
    return this.#flush();
  }

  drained(signal: AbortSignal): Promise<void> {
    const response = this.#response;
    const gone = this.#gone;
    if (this.#ended || gone.aborted || signal.aborted || response.destroyed || !response.writableNeedDrain)
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
  }

  end(): void {
    if (this.#ended) return;
    const text = this.#turn;
    this.#ended = true;
    this.#turn = null;
    if (!this.#response.destroyed) this.#response.end(text ?? '');
  }

  #begin(): void {
    if (this.#turn !== null) return;
    this.#turn = '';
    process.nextTick(() => this.#flush());
  }

  #flush(): boolean {
    const response = this.#response;
    const text = this.#turn;
    this.#turn = null;
    if (this.#ended || text === null || response.destroyed) return true;
    if (text !== '') return response.write(text);
    response.flushHeaders();
    return true;
  }
}
