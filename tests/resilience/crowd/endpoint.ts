/** One session's requests on an endpoint whose network may fail: connections that stand still are dropped, waits are as told. */
import { setTimeout as pause } from 'node:timers/promises';
import type { HttpAnswer } from '@throughline/testkit/processes';
import type { Counts } from './tally.ts';

export interface EndpointOptions {
  readonly url: string;
  readonly counts: Counts;
  /** A stream on which nothing came for as long, not even a keepalive, is dropped. */
  readonly idleMs: number;
}

const RETRY_MS = 200;
const WATCH_MS = 250;

/** What became of a request: an answer to read, or nothing that can be used, already waited for. */
export type Asked = { readonly answer: HttpAnswer } | { readonly failed: 'no answer' | 'refused' | 'may have run' };

/** Sends, and judges what is the same for each request. Throws on a 503 or 504 that does not say what it must. */
export async function ask(options: EndpointOptions, send: () => Promise<HttpAnswer>): Promise<Asked> {
  const { counts } = options;
  let answer: HttpAnswer;
  try {
    answer = await send();
  } catch {
    counts.dropped++;
    await pause(RETRY_MS);
    return { failed: 'no answer' };
  }
  // A gateway that stood still had not read the request when its time was over: nothing was taken in.
  if (answer.status === 408) {
    counts.refused++;
    await pause(RETRY_MS);
    return { failed: 'refused' };
  }
  if (answer.status !== 503 && answer.status !== 504) return { answer };
  const body = await textOf(answer, options);
  if (body === null) return { failed: 'no answer' };
  if (answer.status === 504) {
    if (!body.includes('"mayHaveRun":true')) throw new Error(`504 without mayHaveRun: ${body}`);
    counts.mayHaveRun++;
    return { failed: 'may have run' };
  }
  const seconds = Number(answer.headers['retry-after']);
  if (!(seconds >= 0)) throw new Error(`503 without Retry-After: ${body}`);
  counts.refused++;
  await pause(seconds * 1000);
  return { failed: 'refused' };
}

/** Resolves when the stream has closed, by its server, by the network, or because nothing came any more. */
export async function readToEnd(answer: HttpAnswer, { idleMs, counts }: EndpointOptions): Promise<void> {
  let count = -1;
  let sinceMs = 0;
  const timer = setInterval(() => {
    if (answer.items.length !== count) {
      count = answer.items.length;
      sinceMs = performance.now();
    } else if (performance.now() - sinceMs > idleMs) answer.cut();
  }, WATCH_MS);
  const closing = await answer.closed;
  clearInterval(timer);
  if (closing === 'cut') counts.dropped++;
}

/** The body of an answer that is no stream; null if it does not come whole. */
export async function textOf(answer: HttpAnswer, options: EndpointOptions): Promise<string | null> {
  const timer = setTimeout(() => {
    answer.cut();
  }, options.idleMs);
  const closing = await answer.closed;
  clearTimeout(timer);
  return closing === 'end' ? await answer.text() : null;
}

/** The cursor to go on from. */
export function lastIdOf(items: readonly { readonly id?: string }[]): string | undefined {
  return items.findLast(({ id }) => id !== undefined)?.id;
}
