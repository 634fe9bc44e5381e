/** A session of the faulty server: its streams, and what it asked the client. */
import type { JsonRpcId, JsonRpcRequest, JsonRpcResponse, StreamKind } from '@throughline/protocol';
import { canPrime, requestStream, standaloneStream } from '@throughline/protocol';
import type { Numbers } from './numbering.ts';
import { ScriptedStream } from './scripted-stream.ts';

const ANSWER_DEADLINE_MS = 30_000;

export class FaultySession {
  readonly id: string;
  readonly version: string;
  readonly #numbers: Numbers;
  readonly #streams: ScriptedStream[] = [];
  readonly #calls = new Map<JsonRpcId, ScriptedStream>();
  readonly #asked = new Map<JsonRpcId, (response: JsonRpcResponse) => void>();
  #standalone: ScriptedStream | null = null;
  #wasListenedTo = false;
  #asks = 0;

  constructor(numbers: Numbers, id: string, version: string) {
    this.#numbers = numbers;
    this.id = id;
    this.version = version;
  }

  canPrime(): boolean {
    return canPrime(this.version);
  }

  openStream(kind: StreamKind, requestId?: JsonRpcId): ScriptedStream {
    const at = this.#numbers.takeOffset();
    const label = kind === 'request' ? requestStream(at) : standaloneStream(at);
    const stream = new ScriptedStream(label, this.#numbers.startStream(this.id, label, requestId), requestId);
    this.#streams.push(stream);
    return stream;
  }

  /** Remembers on which stream a call is answered. */
  noteCall(requestId: JsonRpcId, stream: ScriptedStream): void {
    this.#calls.set(requestId, stream);
  }

  /** The stream of an earlier call with this id; `null` if there was none. */
  earlierCall(requestId: JsonRpcId): ScriptedStream | null {
    return this.#calls.get(requestId) ?? null;
  }

  /** Where messages go that belong to no request. */
  standalone(): ScriptedStream {
    return (this.#standalone ??= this.openStream('standalone'));
  }

  /** A GET without a cursor: what was said before anybody listened is kept for the first one. */
  listen(): ScriptedStream {
    if (this.#wasListenedTo) {
      this.#standalone?.finish();
      this.#standalone = null;
    }
    this.#wasListenedTo = true;
    return this.standalone();
  }

  find(lastEventId: string): { readonly stream: ScriptedStream; readonly held: number } | null {
    for (const stream of this.#streams) {
      const held = stream.countUpTo(lastEventId);
      if (held !== null) return { stream, held };
    }
    return null;
  }

  /** Rejects after 30 s. */
  async ask(
    method: string,
    params: Record<string, unknown>,
    say: (request: JsonRpcRequest) => void,
  ): Promise<JsonRpcResponse> {
    const id = `ask-${++this.#asks}`;
    const { promise, resolve, reject } = Promise.withResolvers<JsonRpcResponse>();
    const timer = setTimeout(() => reject(new Error(`${method} was not answered in time`)), ANSWER_DEADLINE_MS);
    this.#asked.set(id, resolve);
    try {
      say({ jsonrpc: '2.0', id, method, params });
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#asked.delete(id);
    }
  }

  takeAnswer(response: JsonRpcResponse): void {
    if (response.id !== null) this.#asked.get(response.id)?.(response);
  }

  close(): void {
    for (const stream of this.#streams) stream.finish();
  }
}
