/** One SSE answer: text to bytes (with the lies about bytes), keepalives, and the ways to end it. */
import type { ServerResponse } from 'node:http';
import { commentText, eventText } from './sse-text.ts';
import type { StreamEvent } from './sse-text.ts';

/** How text becomes bytes. Default: UTF-8, lines end with LF. */
export interface ByteForm {
  readonly isCrlf: boolean;
  readonly hasBom: boolean;
}

export interface ConnectionOptions {
  readonly response: ServerResponse;
  readonly form: ByteForm;
  readonly keepAliveMs: number;
}

export class SseConnection {
  readonly #options: ConnectionOptions;
  readonly #keepAlive: NodeJS.Timeout;
  #isMute = false;

  /** The head must have been written. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#keepAlive = setInterval(() => this.text(commentText('keepalive')), options.keepAliveMs);
    options.response.once('close', () => clearInterval(this.#keepAlive));
    options.response.flushHeaders();
    if (options.form.hasBom) options.response.write(Buffer.from([0xef, 0xbb, 0xbf]));
  }

  onClosed(listener: () => void): void {
    this.#options.response.once('close', listener);
  }

  event(event: StreamEvent): void {
    this.text(eventText(event.id, event.data));
  }

  text(text: string): void {
    this.bytes(this.encode(text));
  }

  /** The bytes that {@link text} would write. */
  encode(text: string): Buffer {
    return Buffer.from(this.#options.form.isCrlf ? text.replaceAll('\n', '\r\n') : text);
  }

  bytes(bytes: Uint8Array): void {
    if (!this.#isMute && !this.#options.response.writableEnded) this.#options.response.write(bytes);
  }

  /** From now on nothing is written, not even a keepalive; the connection stays open. */
  mute(): void {
    this.#isMute = true;
  }

  end(): void {
    clearInterval(this.#keepAlive);
    this.#options.response.end();
  }

  /** Cuts the connection in the middle of the answer. */
  cut(): void {
    clearInterval(this.#keepAlive);
    this.#options.response.destroy();
  }
}
