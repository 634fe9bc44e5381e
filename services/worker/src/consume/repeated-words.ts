/**
 * What calls that are run again say: what the client has is not sent again, what it answered is fed back, and a call
 * that says something else fails. SPEC: WRK-MEMORY, WRK-MEMORY-DIFFERS, WRK-MEMORY-STDIO.
 */
import type { ReplayMemory } from '@throughline/history';
import type { JsonRpcId, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest } from '@throughline/protocol';
import type { ClientCalls } from './client-calls.ts';
import type { HostedSession } from './hosted-session.ts';
import { idKey } from './open-call.ts';
import type { OpenCall } from './open-call.ts';

type Said = JsonRpcRequest | JsonRpcNotification;

export interface RepeatedWordsOptions {
  readonly calls: ClientCalls;
  /** Hands a message to the server. */
  pass(session: HostedSession, message: JsonRpcMessage): void;
}

export class RepeatedWords {
  readonly #options: RepeatedWordsOptions;

  constructor(options: RepeatedWordsOptions) {
    this.#options = options;
  }

  /** The running call that is to say this next; for servers that do not tell whose a message is. */
  whoExpects(session: HostedSession, message: Said): OpenCall | undefined {
    const plain = asJson(message);
    return [...session.calls.values()].find((call) => repeating(call)?.expects(plain) === true);
  }

  /** The running calls that are to say this, now or later. */
  whoRemembers(session: HostedSession, message: Said): readonly OpenCall[] {
    const plain = asJson(message);
    return this.repeating(session).filter((call) => repeating(call)?.remembers(plain) === true);
  }

  /** Calls that still repeat what they had said. */
  repeating(session: HostedSession): readonly OpenCall[] {
    return [...session.calls.values()].filter((call) => repeating(call) !== null);
  }

  /** Hears what the call says; `true` if it is dealt with, and must not be sent. */
  hear(session: HostedSession, call: OpenCall, message: Said): boolean {
    const heard = repeating(call)?.hear(asJson(message)) ?? { do: 'send' };
    if (heard.do === 'send') return false;
    if (heard.do === 'diverged') this.lose(session, call);
    else if (heard.asked !== null && 'id' in message) {
      if (heard.answer === null) session.outgoing.set(String(heard.asked), { call, id: message.id });
      else this.#options.pass(session, { ...heard.answer, id: message.id });
    }
    return true;
  }

  /** Whether the answer of this call may be told: not before it has said all that the client has heard. */
  mayAnswer(session: HostedSession, call: OpenCall): boolean {
    if (repeating(call) === null) return true;
    this.#options.calls.lose(session, call);
    return false;
  }

  /** The call fails, and its server is told that nobody waits for it. */
  lose(session: HostedSession, call: OpenCall): void {
    this.#options.calls.lose(session, call);
    const params = { requestId: call.message.id, reason: 'it did not repeat what it had said' };
    this.#options.pass(session, { jsonrpc: '2.0', method: 'notifications/cancelled', params });
  }
}

/** The id under which the client knows a question that this server asked as `id`. */
export function knownAs(session: HostedSession, id: JsonRpcId): string | undefined {
  for (const [wireId, asked] of session.outgoing) if (asked.id !== null && idKey(asked.id) === idKey(id)) return wireId;
  return undefined;
}

/** What the call has still to repeat; `null`: nothing. */
function repeating({ state, memory }: OpenCall): ReplayMemory | null {
  const replay = state === 'running' ? (memory?.replay ?? null) : null;
  return replay?.isOver() === false ? replay : null;
}

/** What the log would hold of it. */
function asJson(message: Said): Said {
  return JSON.parse(JSON.stringify(message)) as Said;
}
