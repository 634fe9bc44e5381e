/** One call to its end, over as many connections, gateways and answers as it takes. */
import { BrokenStream, checkStream } from '@throughline/testkit/processes';
import type { HttpAnswer, RawClient, SseItem } from '@throughline/testkit/processes';
import { ask, lastIdOf, readToEnd, textOf } from './endpoint.ts';
import type { EndpointOptions } from './endpoint.ts';
import type { FindingKind } from './tally.ts';

/** `over`: its session has ended, with a reason. `broken`: a promise is. */
export type CallOutcome =
  | { readonly kind: 'result'; readonly progress: readonly number[] }
  | { readonly kind: 'owner lost'; readonly mayHaveRun: boolean }
  | { readonly kind: 'unanswered' }
  | { readonly kind: 'over'; readonly reason: string }
  | { readonly kind: 'broken'; readonly finding: FindingKind; readonly what: string };

export interface CallOptions extends EndpointOptions {
  readonly wire: RawClient;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Longest time that it may take, faults included; one that takes longer hangs. */
  readonly deadlineMs: number;
  /** Told of each answer that streams, and `null` when it has closed. */
  onStream(answer: HttpAnswer | null): void;
}

/** A repeated POST is known for what it is for a minute (WRK-DEDUPE): sent again no later than this after the first. */
const REPEAT_MS = 45_000;

interface Message {
  readonly params?: { readonly progress: number };
  readonly result?: object;
  readonly error?: { readonly message: string; readonly data?: Readonly<Record<string, unknown>> };
}

export async function callToEnd(options: CallOptions): Promise<CallOutcome> {
  const { wire, url, name, args, counts, deadlineMs } = options;
  const id = wire.nextId();
  const startedAt = performance.now();
  const items: SseItem[] = [];
  let mayRunSince: number | null = null;
  for (;;) {
    const now = performance.now();
    if (now - startedAt > deadlineMs)
      return { kind: 'broken', finding: 'hung', what: `${name} ${id} after ${deadlineMs} ms` };
    const cursor = lastIdOf(items);
    if (cursor === undefined && mayRunSince !== null && now - mayRunSince > REPEAT_MS) return { kind: 'unanswered' };
    const asked = await ask(options, () =>
      cursor === undefined ? wire.callTool(url, name, args, id) : wire.resume(url, cursor),
    );
    if (cursor === undefined) {
      counts.longestHeadMs = Math.max(counts.longestHeadMs, performance.now() - now);
      // 503: nothing was done.
      if (!('failed' in asked) || asked.failed !== 'refused') mayRunSince ??= now;
    }
    if ('failed' in asked) continue;
    const { answer } = asked;
    if (answer.status !== 200) {
      const body = answer.status === 204 ? '' : await textOf(answer, options);
      if (body !== null) return judgeHead(answer.status, body, items);
      continue;
    }
    options.onStream(answer);
    await readToEnd(answer, options);
    items.push(...answer.items);
    options.onStream(null);
    const outcome = judgeItems(wire.sessionId, items);
    if (outcome !== null) return outcome;
  }
}

function judgeHead(status: number, body: string, items: readonly SseItem[]): CallOutcome {
  if (status === 404) return { kind: 'over', reason: reasonIn(body) };
  const what = `${status} after ${items.length} items: ${body.slice(0, 500)}`;
  return { kind: 'broken', finding: status === 204 ? 'lost' : 'wrong', what };
}

/** Null while the end has not come. */
function judgeItems(sessionId: string, items: readonly SseItem[]): CallOutcome | null {
  let messages: readonly Message[];
  try {
    messages = checkStream(sessionId, items).map(({ data }) => JSON.parse(data) as Message);
  } catch (error) {
    return describeBroken(error);
  }
  const last = messages.at(-1);
  const progress = messages.flatMap(({ params }) => (params === undefined ? [] : [params.progress]));
  if (last?.result !== undefined) return { kind: 'result', progress };
  if (last?.error === undefined) return null;
  const { message, data = {} } = last.error;
  const { code, reason, action, mayHaveRun } = data;
  if (code === 'OWNER_LOST' && typeof mayHaveRun === 'boolean') return { kind: 'owner lost', mayHaveRun };
  if (data['retry'] === 'reinitialize' || action === 'reinitialize')
    return { kind: 'over', reason: typeof reason === 'string' ? reason : String(code) };
  return { kind: 'broken', finding: 'wrong', what: `${message} ${JSON.stringify(data)}` };
}

export function describeBroken(error: unknown): Extract<CallOutcome, { kind: 'broken' }> {
  const finding = error instanceof BrokenStream && error.fault !== 'malformed' && error.fault !== 'content';
  return {
    kind: 'broken',
    finding: finding ? error.fault : 'wrong',
    what: error instanceof Error ? error.message : String(error),
  };
}

/** The reason, or else the code, in a JSON-RPC error body. */
export function reasonIn(body: string): string {
  const found = /"reason":"(?<reason>[^"]+)"/.exec(body) ?? /"code":"(?<reason>[^"]+)"/.exec(body);
  return found?.groups?.['reason'] ?? 'no reason given';
}
