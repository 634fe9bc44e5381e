/** One HTTP exchange on a connection of its own, with a body that may be a stream of events. */
import { request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request as requestTls } from 'node:https';
import { SseParser } from './sse-parser.ts';
import type { SseItem } from './sse-parser.ts';
import { within } from './wait-until.ts';

export interface ExchangeOptions {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'OPTIONS';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Milliseconds until the head of the answer must have come. Default: as long as it takes. */
  readonly headMs?: number;
  /** The address of this machine that it comes from, such as `127.0.0.2`. Default: the system's choice. */
  readonly localAddress?: string;
  /** Trust in the certificate of an https URL, in PEM. Default: what Node trusts. */
  readonly ca?: string;
}

/** How the body came to its end: `end` as the server meant it, `cut` without one. */
export type Closing = 'end' | 'cut';

/** An answer as it comes in. Nothing is lost if nobody waits. */
export class HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Events and comments so far, in order. */
  readonly items: SseItem[] = [];
  readonly closed: Promise<Closing>;
  readonly #response: IncomingMessage;
  readonly #watchers = new Set<() => void>();
  #text = '';
  #closing: Closing | null = null;

  constructor(response: IncomingMessage) {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    const isStream = this.headers['content-type']?.startsWith('text/event-stream') === true;
    const parser = new SseParser((item) => {
      this.items.push(item);
      this.#wake();
    });
    response.on('data', (chunk: Buffer) => {
      if (isStream) parser.push(chunk);
      else this.#text += chunk.toString('utf8');
    });
    this.closed = new Promise((resolve) => {
      response.on('error', () => undefined);
      response.on('close', () => {
        this.#closing = response.complete ? 'end' : 'cut';
        resolve(this.#closing);
        this.#wake();
      });
    });
  }

  /** Events with data. */
  events(): readonly SseItem[] {
    return this.items.filter(({ kind, data }) => kind === 'event' && data !== '');
  }

  /** The newest id seen; `undefined` before the first. */
  lastId(): string | undefined {
    return this.items.findLast(({ id }) => id !== undefined)?.id;
  }

  /** The text of a body that is no stream, once it is complete. */
  async text(): Promise<string> {
    await within('the body', this.closed);
    return this.#text;
  }

  /** The first item that fits, once it is there. Rejects if the answer closes without it, or after `deadlineMs`. */
  async until(what: string, fits: (item: SseItem) => boolean, deadlineMs = 15_000): Promise<SseItem> {
    return await within(
      what,
      new Promise((resolve, reject) => {
        const check = (): void => {
          const found = this.items.find(fits);
          if (found === undefined && this.#closing === null) return;
          this.#watchers.delete(check);
          if (found === undefined)
            reject(
              new Error(`${what}: the answer closed (${this.#closing ?? ''}) without it: ${describeAnswer(this)}`),
            );
          else resolve(found);
        };
        this.#watchers.add(check);
        check();
      }),
      deadlineMs,
    );
  }

  /** Drops the connection, as a client that goes away does. */
  cut(): void {
    this.#response.destroy();
  }

  #wake(): void {
    for (const check of [...this.#watchers]) check();
  }
}

/**
 * Resolves with the head of the answer. Rejects if no answer came: refused (`ECONNREFUSED`), cut before it
 * (`ECONNRESET`), or not within `headMs`, which drops the connection.
 */
export function exchange(
  url: string,
  { method, headers = {}, body, headMs, localAddress, ca }: ExchangeOptions,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
    const timer =
      headMs === undefined ? undefined : setTimeout(() => sent.destroy(new Error(`no answer in ${headMs} ms`)), headMs);
    const from = localAddress === undefined ? {} : { localAddress };
    const trust = ca === undefined ? {} : { ca };
    const options = { method, agent: false, headers: { ...headers, ...length }, ...from, ...trust };
    const sent = (url.startsWith('https:') ? requestTls : request)(url, options, (response) => {
      clearTimeout(timer);
      resolve(new HttpAnswer(response));
    });
    sent.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    sent.end(body);
  });
}

export function describeAnswer(answer: HttpAnswer): string {
  const items = answer.items.map(({ kind, id, data }) => `${kind} ${id ?? '-'} ${data.slice(0, 600)}`);
  return `${answer.status}\n${items.slice(-12).join('\n')}`;
}
