/**
 * Notifications and answers of the client: they pass the queue, since a tool that waits for an answer must get it.
 * SPEC: WRK-PASS, WRK-NAMESPACE.
 */
import { errorText } from '@throughline/log';
import type { JsonRpcMessage, JsonRpcNotification, JsonRpcResponse } from '@throughline/protocol';
import { isPingId, parseWireRequestId } from '../settle/server-request-ids.ts';
import type { ClientCalls } from './client-calls.ts';
import { RestoreRefusedError } from './hosted-session.ts';
import type { HostedSession } from './hosted-session.ts';
import type { OpenCall } from './open-call.ts';
import type { SessionLife } from './session-life.ts';
import type { SessionRecords } from './session-records.ts';
import { drop } from './tenure-parts.ts';
import type { TenureParts } from './tenure-parts.ts';

export interface ClientMessagesOptions {
  readonly parts: TenureParts;
  readonly calls: ClientCalls;
  readonly life: SessionLife;
  readonly records: SessionRecords;
  /** The client said that it is initialized. */
  onInitialized(session: HostedSession): void;
}

export class ClientMessages {
  readonly #options: ClientMessagesOptions;
  readonly #parts: TenureParts;

  constructor(options: ClientMessagesOptions) {
    this.#options = options;
    this.#parts = options.parts;
  }

  notify(key: string, message: JsonRpcNotification, canPoll: boolean): void {
    const session = this.#parts.sessions.get(key);
    if (session === undefined || session.ended || this.#options.life.isTerminating(key)) {
      drop(this.#parts, 'no-session');
      return;
    }
    session.lastActivityMs = this.#parts.context.clock.monoMs();
    if (message.method === 'notifications/cancelled') {
      this.#cancel(session, message, canPoll);
      return;
    }
    const isInitialized = message.method === 'notifications/initialized';
    const isRebuilt = !session.isLoaded && session.record !== null && session.calls.size === 0;
    this.#options.records.note(session, message.method, message.params);
    if (isInitialized) this.#options.onInitialized(session);
    // A server that is rebuilt hears it when it is rebuilt.
    if (isInitialized && isRebuilt) return;
    if (session.isClogged) drop(this.#parts, 'server-clogged');
    else this.pass(session, message, canPoll);
  }

  answer(key: string, message: JsonRpcResponse, canPoll: boolean): void {
    if (isPingId(message.id)) return;
    const session = this.#parts.sessions.get(key);
    const named = parseWireRequestId(message.id);
    if (session === undefined || session.ended || named === null) {
      drop(this.#parts, 'answer-to-nothing');
      return;
    }
    // Its name says whose it is: of this claim, and of this instance, as long as that lives; or of a call that is run again.
    const wireId = String(message.id);
    const asked = session.outgoing.get(wireId);
    const isHeard = asked === undefined ? keepForRecalled(session, message) : asked.id === null || session.isLoaded;
    if (!isHeard) {
      drop(this.#parts, 'answer-to-former-owner');
      return;
    }
    session.lastActivityMs = this.#parts.context.clock.monoMs();
    if (asked === undefined) return;
    session.outgoing.delete(wireId);
    if (asked.id !== null) this.pass(session, { ...message, id: asked.id }, canPoll);
    else if (asked.call !== null) this.#remember(session, asked.call, message);
  }

  /** The call has not asked again yet. */
  #remember(session: HostedSession, call: OpenCall, answer: JsonRpcResponse): void {
    if (call.memory?.fits(JSON.stringify(answer).length) === true) call.memory.replay?.learn(answer);
    else this.#options.calls.lose(session, call);
  }

  /** Hands over what needs no answer; a server that is not there cannot take it. */
  pass(session: HostedSession, message: JsonRpcMessage, canPoll: boolean): void {
    session.deliver(message, canPoll).catch((error: unknown) => {
      if (this.#parts.over.aborted || session.ended) return;
      drop(this.#parts, 'server-gone');
      this.#parts.context.logger.warn('message could not be delivered', {
        partition: this.#parts.partition,
        session: session.key,
        error: errorText(error),
      });
      if (error instanceof RestoreRefusedError) void this.#options.life.end(session.key, 'server-gone');
    });
  }

  #cancel(session: HostedSession, message: JsonRpcNotification, canPoll: boolean): void {
    const requestId = message.params?.['requestId'];
    const isCancelled =
      (typeof requestId === 'string' || typeof requestId === 'number') &&
      this.#options.calls.cancel(session, requestId, () => {
        this.pass(session, message, canPoll);
      });
    if (!isCancelled) drop(this.#parts, 'cancel-of-nothing');
  }
}

/** Calls of which it is still being read what they had asked keep every answer; `false` if there are none. */
function keepForRecalled(session: HostedSession, answer: JsonRpcResponse): boolean {
  let isKept = false;
  for (const { memory } of session.calls.values()) {
    if (memory === null || memory.replay !== null) continue;
    memory.keep(answer);
    isKept = true;
  }
  return isKept;
}
