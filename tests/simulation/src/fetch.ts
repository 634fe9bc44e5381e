/** One HTTP exchange of a simulated client, from the request to its end, with the client's own patience. */
import type { Clock } from '@throughline/log';
import type { ExchangeRecord } from './records-of-run.ts';
import type { Network, WireRequest } from './network.ts';
import { createSseParser } from './sse-parser.ts';
import type { SseEvent } from './sse-parser.ts';

export interface FetchOptions {
  readonly network: Network;
  readonly clock: Clock;
  readonly address: string;
  readonly request: WireRequest;
  readonly record: ExchangeRecord;
  /** Milliseconds without a byte after which the client takes the connection for dead. */
  readonly patienceMs: number;
  /** Before this the client reads nothing. */
  readonly holdUntilMs?: number;
  /** Each event of an SSE answer; `false`: the client leaves. */
  onEvent?(event: SseEvent): boolean;
  onHead?(status: number, headers: Readonly<Record<string, string>>): void;
  /** Given the way to leave from outside. */
  onOpen?(leave: () => void): void;
}

export interface Fetched {
  /** `null`: no answer came. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Body of an answer that is no SSE stream. */
  readonly body: string;
  readonly retryMs: number | null;
  readonly end: NonNullable<ExchangeRecord['end']>;
}

export function fetchOverWire(options: FetchOptions): Promise<Fetched> {
  const { network, clock, record, patienceMs, onEvent } = options;
  return new Promise((resolve) => {
    let status: number | null = null;
    let headers: Readonly<Record<string, string>> = {};
    let body = '';
    let retryMs: number | null = null;
    let isOver = false;
    let cancelPatience = (): void => undefined;
    const finish = (end: Fetched['end']): void => {
      if (isOver) return;
      isOver = true;
      cancelPatience();
      record.status = status;
      record.end = end;
      resolve({ status, headers, body, retryMs, end });
    };
    const wait = (): void => {
      cancelPatience();
      cancelPatience = clock.setTimer(patienceMs, () => {
        exchange.close();
        finish('silent');
      });
    };
    const leave = (): void => {
      exchange.close();
      finish('left');
    };
    const parser = createSseParser({
      onEvent(event) {
        if (isOver) return;
        if (event.hasId) record.receipts.push({ atMs: clock.monoMs(), id: event.id, data: event.data });
        if (onEvent?.(event) === false) leave();
      },
      onRetry(ms) {
        retryMs = ms;
      },
      onComment(text) {
        const live = /^live (\S+)$/.exec(text)?.[1];
        if (live === undefined) return;
        record.liveAt = Number(live.split('.')[2]);
        record.liveMs = clock.monoMs();
      },
    });
    const exchange = network.request(options.address, options.request, {
      onHead(code, given) {
        status = code;
        record.status = code;
        record.headMs = clock.monoMs();
        headers = given;
        wait();
        options.onHead?.(code, given);
      },
      onText(text) {
        if (isOver) return;
        wait();
        if (headers['Content-Type'] === 'text/event-stream') parser.push(text);
        else body += text;
      },
      onEnd: finish,
    });
    if (options.holdUntilMs !== undefined) exchange.holdUntil(options.holdUntilMs);
    wait();
    options.onOpen?.(leave);
  });
}
