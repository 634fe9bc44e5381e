/**
 * The MCP server behind the simulated worker: tools whose runs are counted in a side ledger that outlives the worker.
 * It lives by the clock of its worker, so it dies with it.
 */
import { sleep } from '@throughline/log';
import type { JsonRpcId, JsonRpcMessage, JsonRpcRequest } from '@throughline/protocol';
import type { HostCallbacks, HostContext, HostSession, McpHost } from '@throughline/worker/host';
// The file itself, not the package's subpath: that one loads the real hosts, with child processes and the SDK.
import { HostError } from '../../../services/worker/src/host/host.ts';
import type { Chance } from './chance.ts';
import type { RunOfTool } from './records-of-run.ts';
import type { SimProcess } from './sim-process.ts';

export interface ToolSpec {
  readonly readOnly?: boolean;
  readonly idempotent?: boolean;
}

/** Tools by name with what they declare of themselves. */
export const TOOLS: Readonly<Record<string, ToolSpec>> = {
  echo: {},
  effect: {},
  countdown: {},
  lookup: { readOnly: true },
  upsert: { idempotent: true },
  ask: {},
  interview: { idempotent: true },
  wander: { idempotent: true },
  shout: {},
  poll: {},
  fail: {},
};

export interface ScriptedHostOptions {
  readonly process: SimProcess;
  readonly ledger: RunOfTool[];
  readonly nowMs: () => number;
  /** How often an instance ends by itself in the middle of a call. */
  readonly instanceFailure: number;
}

export function createScriptedHost(options: ScriptedHostOptions): McpHost {
  const sessions = new Set<ScriptedSession>();
  return {
    kind: 'scripted',
    async open(context, callbacks) {
      await sleep(options.process.clock, options.process.chance.between(0, 20));
      const session = new ScriptedSession(options, context, callbacks, () => sessions.delete(session));
      sessions.add(session);
      return session;
    },
    async close() {
      await Promise.all([...sessions].map((session) => session.close()));
    },
  };
}

/** Short: a session whose client is cut off runs one call after the other, and each must still end in bounded time. */
const ASK_TIMEOUT_MS = 2000;

interface CallArguments {
  readonly token: string;
  readonly steps?: number;
  readonly intervalMs?: number;
  readonly pad?: string;
}

class ScriptedSession implements HostSession {
  readonly #options: ScriptedHostOptions;
  readonly #context: HostContext;
  readonly #callbacks: HostCallbacks;
  readonly #onEnd: () => void;
  readonly #chance: Chance;
  readonly #running = new Map<JsonRpcId, AbortController>();
  readonly #asked = new Map<JsonRpcId, (answer: unknown) => void>();
  #nextId = 0;
  #closed = false;

  constructor(options: ScriptedHostOptions, context: HostContext, callbacks: HostCallbacks, onEnd: () => void) {
    this.#options = options;
    this.#context = context;
    this.#callbacks = callbacks;
    this.#onEnd = onEnd;
    this.#chance = options.process.chance;
  }

  deliver(message: JsonRpcMessage): Promise<void> {
    return new Promise((resolve) => {
      this.#options.process.hears('host', () => {
        resolve(this.#take(message));
      });
    });
  }

  #take(message: JsonRpcMessage): Promise<void> {
    if (this.#closed) return Promise.reject(new HostError('HOST_GONE', 'the instance has ended'));
    if (!('method' in message)) {
      if (message.id !== null) this.#asked.get(message.id)?.(message.error ?? message.result);
    } else if ('id' in message) void this.#request(message);
    else if (message.method === 'notifications/cancelled')
      this.#running.get(message.params?.['requestId'] as JsonRpcId)?.abort();
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#closed = true;
    for (const running of this.#running.values()) running.abort();
    this.#onEnd();
    return Promise.resolve();
  }

  async #request(request: JsonRpcRequest): Promise<void> {
    switch (request.method) {
      case 'initialize':
        await this.#answer(request.id, {
          protocolVersion: request.params?.['protocolVersion'],
          capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, logging: {} },
          serverInfo: { name: 'scripted', version: '1' },
        });
        return;
      case 'tools/list': {
        const tools = Object.entries(TOOLS).map(([name, { readOnly, idempotent }]) => ({
          name,
          inputSchema: { type: 'object' },
          annotations: {
            ...(readOnly === undefined ? {} : { readOnlyHint: readOnly }),
            ...(idempotent === undefined ? {} : { idempotentHint: idempotent }),
          },
        }));
        await this.#answer(request.id, { tools });
        return;
      }
      case 'tools/call':
        await this.#call(request);
        return;
      default:
        await this.#answer(request.id, {});
    }
  }

  async #call(request: JsonRpcRequest): Promise<void> {
    const tool = String(request.params?.['name']);
    const call = request.params?.['arguments'] as CallArguments;
    const { clock, name } = this.#options.process;
    const running = new AbortController();
    this.#running.set(request.id, running);
    const run = this.#options.ledger.filter(({ token }) => token === call.token).length + 1;
    this.#options.ledger.push({
      token: call.token,
      tool,
      session: this.#context.sessionId,
      process: name,
      atMs: this.#options.nowMs(),
    });
    const pause = (ms: number): Promise<boolean> => sleep(clock, ms, running.signal);
    try {
      if (this.#chance.happens(this.#options.instanceFailure)) {
        await pause(this.#chance.between(0, 40));
        this.#fail();
        return;
      }
      switch (tool) {
        case 'countdown':
        case 'poll': {
          const steps = call.steps ?? 3;
          const closeAt = tool === 'poll' ? this.#chance.whole(1, steps) : 0;
          for (let step = 1; step <= steps; step++) {
            await this.#progress(request, step, steps);
            if (step === closeAt) this.#callbacks.onCloseStream(request.id);
            if (!(await pause(call.intervalMs ?? 10))) return;
          }
          break;
        }
        case 'ask': {
          const answer = await this.#ask(request.id, call.token, running.signal);
          if (answer === null) return;
          await this.#answer(request.id, this.#result(call, run, { answer }));
          return;
        }
        // Both ask at every second step; the one says the same in every run, the other does not.
        case 'interview':
        case 'wander': {
          const answers: unknown[] = [];
          const steps = call.steps ?? 2;
          for (let step = 1; step <= steps; step++) {
            await this.#progress(request, step, steps, tool === 'wander' && step === 2 ? name : '');
            if (step % 2 === 1) answers.push(await this.#ask(request.id, `${call.token} ${step}`, running.signal));
            if (!(await pause(call.intervalMs ?? 10))) return;
          }
          await this.#answer(request.id, this.#result(call, run, { answer: answers }));
          return;
        }
        case 'shout':
          for (let step = 1; step <= (call.steps ?? 2); step++) {
            await this.#send({
              jsonrpc: '2.0',
              method: 'notifications/resources/updated',
              params: { uri: `sim:/${call.token}/${step}`, mark: this.#mark() },
            });
            if (!(await pause(call.intervalMs ?? 5))) return;
          }
          break;
        case 'fail':
          await this.#send({
            jsonrpc: '2.0',
            id: request.id,
            error: { code: -32000, message: 'the tool failed', data: { code: 'TOOL', token: call.token } },
          });
          return;
        default:
          if (!(await pause(call.intervalMs ?? 0))) return;
      }
      await this.#answer(request.id, this.#result(call, run, {}));
    } finally {
      this.#running.delete(request.id);
    }
  }

  #result(call: CallArguments, run: number, extra: object): object {
    const text = JSON.stringify({ token: call.token, run, mark: this.#mark(), pad: call.pad ?? '', ...extra });
    return { content: [{ type: 'text', text }] };
  }

  /** Which session a message belongs to: it must never be seen in another one. */
  #mark(): string {
    return `mark:${this.#context.sessionId}`;
  }

  async #progress(request: JsonRpcRequest, progress: number, total: number, more = ''): Promise<void> {
    const meta = request.params?.['_meta'] as { progressToken?: JsonRpcId } | undefined;
    if (meta?.progressToken === undefined) return;
    const params = { progressToken: meta.progressToken, progress, total, message: `${this.#mark()} ${more}` };
    await this.#send({ jsonrpc: '2.0', method: 'notifications/progress', params }, request.id);
  }

  async #ask(related: JsonRpcId, text: string, signal: AbortSignal): Promise<unknown> {
    const id = this.#chance.happens(0.5) ? ++this.#nextId : `q-${++this.#nextId}`;
    const answered = new Promise<unknown>((resolve) => {
      this.#asked.set(id, resolve);
      signal.addEventListener('abort', () => {
        resolve(null);
      });
      // As official servers do: nobody waits for a person for ever.
      this.#options.process.clock.setTimer(ASK_TIMEOUT_MS, () => {
        resolve(`timed out ${text}`);
      });
    });
    const params = { message: `${this.#mark()} ${text}`, requestedSchema: { type: 'object', properties: {} } };
    await this.#send({ jsonrpc: '2.0', id, method: 'elicitation/create', params }, related);
    return answered;
  }

  async #answer(id: JsonRpcId, result: unknown): Promise<void> {
    await this.#send({ jsonrpc: '2.0', id, result });
  }

  async #send(message: JsonRpcMessage, related?: JsonRpcId): Promise<void> {
    if (this.#closed) return;
    await new Promise<void>((resolve) => {
      this.#options.process.hears('host', () => {
        resolve(this.#callbacks.onMessage(message, related));
      });
    });
  }

  #fail(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const running of this.#running.values()) running.abort();
    this.#onEnd();
    this.#callbacks.onGone('simulated: the instance died');
  }
}
