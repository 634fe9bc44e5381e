/**
 * What a call that is run again remembers of its first run: what was said on its stream, in the order of the log, and
 * what the client answered. A message equal to the next remembered one is not sent again; the first one that differs
 * ends the call, and so does a result that comes before all was repeated. Ids of requests are not compared: a rebuilt
 * server counts anew. SPEC: REQ-MEMORY, REQ-FED.
 */
import { isJsonRpcId } from '@throughline/protocol';
import type {
  JsonRpcId,
  JsonRpcMessage,
  JsonRpcNotification,
  JsonRpcRequest,
  JsonRpcResponse,
} from '@throughline/protocol';
import { isSameJson } from './same-json.ts';

export type Heard =
  /** All that is remembered was repeated: this is new. */
  | { readonly do: 'send' }
  /** The client has it. `asked`: the id under which the client knows it, if it is a request; `answer`: what it said, if it did. */
  | { readonly do: 'swallow'; readonly asked: JsonRpcId | null; readonly answer: JsonRpcResponse | null }
  | { readonly do: 'diverged' };

interface Remembered {
  readonly said: JsonRpcMessage;
  /** The id of a request. */
  readonly id: JsonRpcId | null;
  answer: JsonRpcResponse | null;
  /** The server did not wait for its answer to the end: an answer that came all the same was never given to it. */
  isWithdrawn: boolean;
}

export class ReplayMemory {
  readonly #remembered: readonly Remembered[];
  readonly #requests = new Map<JsonRpcId, Remembered>();
  #repeated = 0;
  #hasDiverged = false;

  /** @param said what the client was told on the stream of the call, in the order of the log, parsed from JSON. */
  constructor(said: readonly JsonRpcMessage[]) {
    this.#remembered = said.map((message) => {
      const id = 'method' in message && 'id' in message ? message.id : null;
      return { said: message, id, answer: null, isWithdrawn: false };
    });
    for (const each of this.#remembered) {
      if (each.id !== null) this.#requests.set(each.id, each);
      const withdrawn = withdrawnId(each.said);
      const request = withdrawn === null ? undefined : this.#requests.get(withdrawn);
      if (request !== undefined) request.isWithdrawn = true;
    }
  }

  /** Takes in what the client answered, in the order of `inbound`. `false`: it answers nothing that is open here. */
  learn(answer: JsonRpcResponse): boolean {
    const asked = answer.id === null ? undefined : this.#requests.get(answer.id);
    if (asked === undefined || asked.isWithdrawn || asked.answer !== null) return false;
    asked.answer = answer;
    return true;
  }

  /** Requests that the client has neither answered nor need not answer any more, by the ids that it knows. */
  open(): readonly JsonRpcId[] {
    return [...this.#requests.values()].flatMap(({ id, answer, isWithdrawn }) =>
      id === null || isWithdrawn || answer !== null ? [] : [id],
    );
  }

  /** Whether all was repeated, so that what comes now is new. */
  isOver(): boolean {
    return !this.#hasDiverged && this.#repeated === this.#remembered.length;
  }

  /** Whether `message` is what is to come next. */
  expects(message: JsonRpcRequest | JsonRpcNotification): boolean {
    const next = this.#remembered[this.#repeated];
    return !this.#hasDiverged && next !== undefined && isSame(next.said, message);
  }

  /** Whether `message` is yet to come. */
  remembers(message: JsonRpcRequest | JsonRpcNotification): boolean {
    return !this.#hasDiverged && this.#remembered.slice(this.#repeated).some(({ said }) => isSame(said, message));
  }

  /** Hears the next message of the new run, answers aside. */
  hear(message: JsonRpcRequest | JsonRpcNotification): Heard {
    if (this.isOver()) return { do: 'send' };
    const next = this.#remembered[this.#repeated];
    if (next === undefined || !this.expects(message)) {
      this.#hasDiverged = true;
      return { do: 'diverged' };
    }
    this.#repeated++;
    return { do: 'swallow', asked: next.id, answer: next.answer };
  }
}

function isSame(said: JsonRpcMessage, message: JsonRpcRequest | JsonRpcNotification): boolean {
  if (!('method' in said) || said.method !== message.method || 'id' in said !== 'id' in message) return false;
  return isSameJson(said.params, message.params);
}

/** The request that the server does not wait for any more. */
export function withdrawnId(said: JsonRpcMessage): JsonRpcId | null {
  if (!('method' in said) || said.method !== 'notifications/cancelled') return null;
  const id = said.params?.['requestId'];
  return isJsonRpcId(id) ? id : null;
}
