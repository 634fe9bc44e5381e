/** One session on one upstream Streamable HTTP session. Messages keep their order where the upstream can see it. */
import { deadline, failureText, sleep, settlesWithin } from '@throughline/log';
import type { JsonRpcId, JsonRpcMessage, JsonRpcRequest } from '@throughline/protocol';
import { HostError } from './host.ts';
import type { HostCallbacks, HostSession } from './host.ts';
import type { HostDeps } from './host-deps.ts';
import { cancelledId, kindOf } from './message-facts.ts';
import { startCall } from './upstream-call.ts';
import type { UpstreamCall } from './upstream-call.ts';
import { AnswerTimeout, fetchHeaders, isSessionLost, LOST_REASON } from './upstream-context.ts';
import type { UpstreamContext, UpstreamLimits } from './upstream-context.ts';
import { createUpstreamHttp, discard, statusText } from './upstream-http.ts';
import type { UpstreamState, UpstreamTarget } from './upstream-http.ts';
import { followStandalone } from './upstream-standalone.ts';

/** A notification or response whose posting failed is posted again: to have it twice is harmless, to miss it is not. */
const ONE_WAY_ATTEMPTS = 3;
const ONE_WAY_RETRY_MS = 200;
/** Milliseconds that a cancel waits for the upstream to begin with the request that it names. */
const CANCEL_ORDER_MS = 250;
/** Milliseconds that the messages after `notifications/initialized` wait for the standalone stream. */
const STANDALONE_OPEN_MS = 1000;

type PostOutcome =
  | { readonly kind: 'taken' }
  /** Worth another attempt. */
  | { readonly kind: 'failed'; readonly why: string }
  | { readonly kind: 'refused'; readonly why: string };

export function createUpstreamSession(
  target: UpstreamTarget,
  callbacks: HostCallbacks,
  deps: HostDeps,
  limits: UpstreamLimits,
): HostSession {
  const ended = new AbortController();
  const state: UpstreamState = { sessionId: undefined, protocolVersion: undefined };
  const calls = new Map<JsonRpcId, UpstreamCall>();
  let standalone: Promise<void> | undefined;
  let goneReason: string | undefined;
  /** Settles when the next message may be posted. Never rejects. */
  let turn: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  const context: UpstreamContext = {
    ...deps,
    http: createUpstreamHttp(target, state),
    state,
    callbacks,
    limits,
    signal: ended.signal,
    async forward(message, related) {
      if (!('method' in message)) {
        // An answer that comes twice, or after the error that we gave in its place, would settle nothing any more.
        const call = message.id === null ? undefined : calls.get(message.id);
        if (call === undefined || !call.takeAnswer()) {
          deps.logger.warn('host.upstream-stray-response', { id: message.id });
          return;
        }
        await callbacks.onMessage(message, call.id);
        return;
      }
      await callbacks.onMessage(message, related);
    },
    lose(reason) {
      if (ended.signal.aborted) return;
      goneReason = reason;
      ended.abort();
      callbacks.onGone(reason);
    },
  };

  const openCall = (request: JsonRpcRequest): UpstreamCall => {
    const call = startCall(context, request);
    calls.set(call.id, call);
    void call.done.then(() => {
      if (calls.get(call.id) === call) calls.delete(call.id);
    });
    return call;
  };

  const postOnce = async (text: string, withinMs: number): Promise<PostOutcome> => {
    try {
      const response = await fetchHeaders(context, withinMs, ended.signal, (signal) => context.http.post(text, signal));
      discard(response);
      if (response.ok) return { kind: 'taken' };
      if (isSessionLost(context, response)) context.lose(LOST_REASON);
      const isTransient = response.status === 429 || response.status >= 500;
      return { kind: isTransient ? 'failed' : 'refused', why: statusText(response) };
    } catch (error) {
      return { kind: error instanceof AnswerTimeout ? 'refused' : 'failed', why: failureText(error) };
    }
  };

  /** Many servers drop what they say before the stream is there, so what follows waits for it a little. */
  const startStandalone = async (): Promise<void> => {
    if (standalone !== undefined) return;
    const tried = Promise.withResolvers<undefined>();
    standalone = followStandalone(context, () => {
      tried.resolve(undefined);
    });
    await settlesWithin(deps.clock, tried.promise, STANDALONE_OPEN_MS);
  };

  const postOneWay = async (message: JsonRpcMessage): Promise<void> => {
    const cancelled = cancelledId(message);
    const call = cancelled === undefined ? undefined : calls.get(cancelled);
    if (call !== undefined) await settlesWithin(deps.clock, call.begun, CANCEL_ORDER_MS);
    const text = JSON.stringify(message);
    // Over all attempts: what comes behind it waits, and so does who handed it over.
    const untilMs = deps.clock.monoMs() + limits.answerMs;
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await postOnce(text, untilMs - deps.clock.monoMs());
      if (ended.signal.aborted) return;
      if (outcome.kind === 'taken') {
        if ('method' in message && message.method === 'notifications/initialized') {
          await startStandalone();
        }
        break;
      }
      if (outcome.kind === 'refused' || attempt === ONE_WAY_ATTEMPTS || deps.clock.monoMs() >= untilMs) {
        deps.logger.warn('host.upstream-message-lost', { why: outcome.why, attempts: attempt });
        break;
      }
      if (!(await sleep(deps.clock, ONE_WAY_RETRY_MS * attempt, ended.signal))) return;
    }
    call?.cancel();
  };

  return {
    async deliver(message) {
      if (waiting >= limits.maxWaiting) context.lose('the upstream MCP server takes no messages: too many wait');
      if (ended.signal.aborted) throw new HostError('HOST_GONE', goneReason ?? 'the session is closed');
      waiting += 1;
      try {
        if (kindOf(message) !== 'request') {
          const posted = turn.then(() => postOneWay(message));
          turn = posted.catch(() => undefined);
          await posted;
          return;
        }
        const request = message as JsonRpcRequest;
        const started = turn.then(() => {
          const call = openCall(request);
          return { call };
        });
        // Nothing can follow initialize before its answer: it names the session and the version.
        turn = request.method === 'initialize' ? started.then(({ call }) => call.done) : started;
        await started;
      } finally {
        waiting -= 1;
      }
    },
    async close() {
      ended.abort();
      const tasks = [...calls.values()].map((call) => call.done);
      if (standalone !== undefined) tasks.push(standalone);
      await settlesWithin(deps.clock, Promise.allSettled(tasks), limits.deleteMs);
      if (state.sessionId === undefined || goneReason !== undefined) return;
      const limit = deadline(deps.clock, limits.deleteMs);
      try {
        discard(await context.http.delete(limit.signal));
      } catch (error) {
        deps.logger.debug('host.upstream-delete-failed', { why: failureText(error) });
      } finally {
        limit.dispose();
      }
    },
  };
}
