/**
 * One request to an upstream, from its POST to its response, over as many connections as that takes. Whatever happens,
 * the request gets exactly one response, unless it was cancelled or the session ended. SPEC: HOST-UPSTREAM-ANSWER.
 */
import { failureText, sleep } from '@throughline/log';
import { errorResponse, wireError } from '@throughline/protocol';
import type { JsonRpcId, JsonRpcMessage, JsonRpcRequest } from '@throughline/protocol';
import { parseMessages } from './message-facts.ts';
import { readSse } from './sse-reader.ts';
import type { SseCursor } from './sse-reader.ts';
import {
  AnswerTimeout,
  delayBefore,
  fetchHeaders,
  isSessionLost,
  LOST_REASON,
  openStream,
} from './upstream-context.ts';
import type { UpstreamContext } from './upstream-context.ts';
import { discard, mayHaveArrived, mediaType, readText, statusText } from './upstream-http.ts';

export interface UpstreamCall {
  readonly id: JsonRpcId;
  /** Resolves when the upstream has begun to answer, or the call is over: a cancel sent after that finds the request there. */
  readonly begun: Promise<unknown>;
  /** Resolves when the call is over and holds no connection. Never rejects. */
  readonly done: Promise<void>;
  /** Whether no response was passed on yet; says yes once and then no. */
  takeAnswer(): boolean;
  /** Gives the call a little time, then frees its connection; it gets no response of ours. */
  cancel(): void;
}

export type UpstreamFailure =
  'upstream-unreachable' | 'upstream-status' | 'upstream-bad-answer' | 'upstream-stream-lost' | 'upstream-timeout';

const MAX_ERROR_BODY_BYTES = 64 * 1024;

export function startCall(context: UpstreamContext, request: JsonRpcRequest): UpstreamCall {
  const { limits, clock, state } = context;
  const own = new AbortController();
  const signal = AbortSignal.any([context.signal, own.signal]);
  const cursor: SseCursor = { lastEventId: undefined, retryMs: undefined };
  const timers = new Set<() => void>();
  const silence = { clock, ms: limits.silenceMs };
  let isAnswered = false;
  const begun = Promise.withResolvers<undefined>();

  const abortAfter = (ms: number): void => {
    timers.add(
      clock.setTimer(ms, () => {
        own.abort();
      }),
    );
  };

  const takeAnswer = (): boolean => {
    if (isAnswered) return false;
    isAnswered = true;
    return true;
  };

  const fail = async (reason: UpstreamFailure, what: string, details: Record<string, unknown> = {}): Promise<void> => {
    if (signal.aborted || !takeAnswer()) return;
    const error = wireError('SERVER_FAILED', `the upstream MCP server ${what}`, {
      reason,
      mayHaveRun: true,
      ...details,
    });
    await context.callbacks.onMessage(errorResponse(request.id, error), request.id);
  };

  /** Passes on what one JSON text holds; false if it is no JSON-RPC. */
  const passOn = async (text: string): Promise<boolean> => {
    const messages = parseMessages(text);
    if ('fault' in messages) return false;
    for (const message of messages) {
      if (request.method === 'initialize') noteVersion(message);
      await context.forward(message, request.id);
    }
    return true;
  };

  const noteVersion = (message: JsonRpcMessage): void => {
    if (!('result' in message) || message.id !== request.id) return;
    const result: unknown = message.result;
    if (typeof result !== 'object' || result === null) return;
    const version = (result as Record<string, unknown>)['protocolVersion'];
    if (typeof version === 'string') state.protocolVersion = version;
  };

  const answerStatus = async (response: Response): Promise<void> => {
    const status = { status: response.status };
    const text = await readText(response, MAX_ERROR_BODY_BYTES, silence).catch(() => undefined);
    const messages = parseMessages(text ?? '');
    const first = 'fault' in messages ? undefined : messages[0];
    // The upstream's own words are better than ours; it may not have known the id.
    if (first !== undefined && 'error' in first && first.error !== undefined && !signal.aborted && takeAnswer()) {
      await context.callbacks.onMessage({ jsonrpc: '2.0', id: request.id, error: first.error }, request.id);
      return;
    }
    await fail('upstream-status', `answered with ${statusText(response)}`, status);
  };

  const readJson = async (response: Response): Promise<void> => {
    let text: string | undefined;
    try {
      text = await readText(response, limits.maxMessageSize, silence);
    } catch (error) {
      await fail('upstream-stream-lost', `broke off its answer (${failureText(error)})`);
      return;
    }
    if (text === undefined) {
      await fail('upstream-bad-answer', `answered with more than ${String(limits.maxMessageSize)} bytes`);
    } else if (!(await passOn(text))) {
      await fail('upstream-bad-answer', 'answered with something that is not JSON-RPC');
    } else {
      await fail('upstream-bad-answer', 'answered without a response to the request');
    }
  };

  /** Reads the answer stream over all its connections, each resumed where the last one ended. */
  const followStream = async (first: ReadableStream<Uint8Array>): Promise<void> => {
    let body: ReadableStream<Uint8Array> | undefined = first;
    let why = 'its stream ended';
    let lastProgressMs = clock.monoMs();
    for (let failures = 0; ; failures += 1) {
      if (body !== undefined) {
        const end = await readSse(body, cursor, {
          maxChars: limits.maxMessageSize,
          silence,
          signal,
          onId(isNew) {
            if (isNew) lastProgressMs = clock.monoMs();
            // A server that is polled may repeat its id while the tool still works; not for ever, though.
            if (clock.monoMs() - lastProgressMs < limits.maxPollMs) failures = 0;
          },
          async onData(data) {
            if (!(await passOn(data))) context.logger.warn('host.upstream-skipped', { start: data.slice(0, 200) });
            if (isAnswered) abortAfter(limits.lingerMs);
          },
        });
        if (isAnswered || end === 'aborted') return;
        if (end === 'too-long') {
          await fail('upstream-bad-answer', `sent more than ${String(limits.maxMessageSize)} characters in one event`);
          return;
        }
        why = end === 'ended' ? 'its stream ended' : 'its stream broke';
      }
      if (cursor.lastEventId === undefined || failures >= limits.maxResumes) {
        const tried =
          cursor.lastEventId === undefined ? 'and cannot be resumed (it has no event ids)' : 'and could not be resumed';
        await fail('upstream-stream-lost', `gave no response: ${why} ${tried}; the request may have run`);
        return;
      }
      if (!(await sleep(clock, delayBefore(context, cursor, failures), signal))) return;
      const opened = await openStream(context, cursor, signal);
      body = undefined;
      switch (opened.kind) {
        case 'stream':
          body = opened.body;
          break;
        case 'retry':
          why = `its stream broke (${opened.why})`;
          break;
        case 'refused':
          await fail(
            'upstream-stream-lost',
            `refused to resume its stream with ${opened.why}; the request may have run`,
          );
          return;
        case 'lost':
          context.lose(LOST_REASON);
          return;
        case 'aborted':
          return;
      }
    }
  };

  const run = async (): Promise<void> => {
    let response: Response;
    try {
      response = await fetchHeaders(context, limits.silenceMs, signal, (inner) =>
        context.http.post(JSON.stringify(request), inner),
      );
    } catch (error) {
      if (error instanceof AnswerTimeout) await fail('upstream-timeout', `did not answer (${error.message})`);
      else {
        const mayHaveRun = mayHaveArrived(error);
        await fail('upstream-unreachable', `cannot be reached (${failureText(error)})`, { mayHaveRun });
      }
      return;
    } finally {
      begun.resolve(undefined);
    }
    if (isSessionLost(context, response)) {
      discard(response);
      context.lose(LOST_REASON);
    } else if (!response.ok) {
      await answerStatus(response);
    } else {
      if (request.method === 'initialize') state.sessionId = response.headers.get('mcp-session-id') ?? undefined;
      const type = mediaType(response);
      if (type === 'text/event-stream' && response.body !== null) {
        await followStream(response.body as ReadableStream<Uint8Array>);
      } else if (type === 'application/json') {
        await readJson(response);
      } else {
        discard(response);
        const what = `answered with status ${String(response.status)} and content type "${type}", not with a response`;
        await fail('upstream-bad-answer', what);
      }
    }
  };

  if (request.method === 'initialize') {
    const { initializeMs } = limits;
    timers.add(
      clock.setTimer(initializeMs, () => {
        void fail('upstream-timeout', `did not answer initialize in ${String(initializeMs)} ms`).finally(() => {
          own.abort();
        });
      }),
    );
  }

  const done = run()
    .catch(async (error: unknown) => {
      context.logger.error('host.upstream-call-failed', { error });
      await fail('upstream-bad-answer', 'gave an answer that could not be handled');
    })
    .finally(() => {
      for (const cancelTimer of timers) cancelTimer();
    });

  return {
    id: request.id,
    begun: begun.promise,
    done,
    takeAnswer,
    cancel() {
      abortAfter(limits.cancelGraceMs);
    },
  };
}
