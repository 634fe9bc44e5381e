/** An MCP server without a process or an SDK: tools that do what their names say, and a ledger of what ran. */
import { sleep } from '@throughline/log';
import type { Clock } from '@throughline/log';
import type { JsonRpcId, JsonRpcMessage, JsonRpcRequest, JsonRpcResponse } from '@throughline/protocol';
import { HostError } from '../host/host.ts';
import type { HostCallbacks, HostContext, HostSession, McpHost } from '../host/host.ts';

export interface ToolRun {
  readonly worker: string;
  readonly tool: string;
  readonly session: string;
  readonly token: string;
  readonly atMs: number;
}

export interface ScriptedHostOptions {
  readonly clock: Clock;
  readonly worker: string;
  /** Survives the worker. */
  readonly runs: ToolRun[];
  /** Methods that are answered with an error. */
  readonly refuses?: ReadonlySet<string>;
  /** Methods that are never answered. */
  readonly ignores?: ReadonlySet<string>;
  /** Takes another answer for what it heard. */
  readonly mishears?: boolean;
  /** Logs something of its own when it has started. */
  readonly greets?: boolean;
  /** Milliseconds until an instance is there. Default 0. */
  readonly openMs?: number;
}

export interface ScriptedHost extends McpHost {
  readonly opened: readonly ScriptedSession[];
}

/** What `tools/list` says: name, then annotations. */
export const SCRIPTED_TOOLS: Readonly<Record<string, Readonly<Record<string, boolean>>>> = {
  effect: {},
  lookup: { readOnlyHint: true },
  upsert: { idempotentHint: true },
  converse: { idempotentHint: true },
  consult: { readOnlyHint: true },
};

/** One step of a conversation, which every tool has that is given a `script`. */
export interface ScriptStep {
  readonly log?: unknown;
  readonly progress?: number;
  /** A question; the conversation goes on with its answer. */
  readonly ask?: string;
  /** Default `elicitation/create`. */
  readonly method?: string;
  /** Milliseconds after which the question is withdrawn. */
  readonly patienceMs?: number;
  /** Milliseconds that pass. */
  readonly ms?: number;
  /** Says something else on each worker. */
  readonly drift?: true;
}

interface CallArguments {
  readonly token?: string;
  readonly ms?: number;
  readonly count?: number;
  readonly bytes?: number;
  readonly script?: readonly ScriptStep[];
  /** `false`: the host does not know to which call a message belongs, as on stdio. */
  readonly related?: boolean;
}

export class ScriptedSession implements HostSession {
  readonly context: HostContext;
  readonly callbacks: HostCallbacks;
  readonly received: JsonRpcMessage[] = [];
  isClosed = false;
  readonly #options: ScriptedHostOptions;
  readonly #running = new Map<JsonRpcId, AbortController>();
  readonly #answers = new Map<JsonRpcId, (answer: JsonRpcResponse) => void>();
  #asked = 0;

  constructor(options: ScriptedHostOptions, context: HostContext, callbacks: HostCallbacks) {
    this.#options = options;
    this.context = context;
    this.callbacks = callbacks;
  }

  /** Methods received, in order. */
  get methods(): readonly string[] {
    return this.received.map((message) => ('method' in message ? message.method : 'response'));
  }

  deliver(message: JsonRpcMessage): Promise<void> {
    if (this.isClosed) return Promise.reject(new HostError('HOST_GONE', 'the instance is closed'));
    this.received.push(message);
    if ('method' in message && 'id' in message) void this.#request(message);
    else if ('method' in message && message.method === 'notifications/initialized') {
      if (this.#options.greets === true) void this.say({ method: 'notifications/message', params: { data: 'hello' } });
    } else if ('method' in message && message.method === 'notifications/cancelled')
      this.#running.get(message.params?.['requestId'] as JsonRpcId)?.abort();
    else if (!('method' in message) && message.id !== null) this.#answers.get(message.id)?.(message);
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.isClosed = true;
    for (const running of this.#running.values()) running.abort();
    return Promise.resolve();
  }

  /** As if its process had died. */
  die(reason = 'killed'): void {
    this.isClosed = true;
    this.callbacks.onGone(reason);
  }

  say(message: object, related?: JsonRpcId): Promise<void> {
    return this.callbacks.onMessage({ jsonrpc: '2.0', ...message } as JsonRpcMessage, related);
  }

  ask(method: string, related?: JsonRpcId): Promise<void> {
    return this.say({ id: ++this.#asked, method, params: {} }, related);
  }

  async #request(request: JsonRpcRequest): Promise<void> {
    const { id, method } = request;
    if (this.#options.ignores?.has(method) === true) return;
    if (this.#options.refuses?.has(method) === true) {
      await this.say({ id, error: { code: -32601, message: `no ${method}` } });
      return;
    }
    if (method === 'initialize') {
      const protocolVersion = request.params?.['protocolVersion'];
      const capabilities = { tools: { listChanged: true }, resources: {}, logging: {} };
      await this.say({ id, result: { protocolVersion, capabilities, serverInfo: { name: 'scripted', version: '1' } } });
    } else if (method === 'tools/list') {
      const tools = Object.entries(SCRIPTED_TOOLS).map(([name, annotations]) => ({ name, annotations }));
      await this.say({ id, result: { tools } });
    } else if (method === 'tools/call') await this.#call(request);
    else await this.say({ id, result: {} });
  }

  async #call(request: JsonRpcRequest): Promise<void> {
    const { id } = request;
    const tool = String(request.params?.['name']);
    const {
      token = '',
      ms = 0,
      count = 1,
      bytes = 0,
      script,
      related,
    } = (request.params?.['arguments'] ?? {}) as CallArguments;
    const { clock, worker, runs } = this.#options;
    const running = new AbortController();
    this.#running.set(id, running);
    runs.push({ worker, tool, session: this.context.sessionId, token, atMs: clock.monoMs() });
    const progressToken = (request.params?.['_meta'] as { progressToken?: JsonRpcId } | undefined)?.progressToken;
    const pad = 'x'.repeat(bytes);
    const step = (progress: number): Promise<void> =>
      this.say({ method: 'notifications/progress', params: { progressToken, progress, pad } }, id);
    if (script !== undefined) {
      const text = await this.#converse(script, related === false ? undefined : id, progressToken, running.signal);
      if (text !== null) await this.say({ id, result: { content: [{ type: 'text', text }] } });
      return;
    }
    switch (tool) {
      case 'die':
        if (await sleep(clock, ms, running.signal)) this.die();
        return;
      case 'hang':
        return;
      case 'ask':
        await this.ask('elicitation/create', id);
        return;
      case 'burst':
        for (let each = 1; each <= count; each++) void step(each);
        break;
      case 'countdown':
      case 'flood':
        for (let each = 1; each <= count; each++) {
          await step(each);
          if (ms > 0 && !(await sleep(clock, ms, running.signal))) return;
        }
        break;
      default:
        if (ms > 0 && !(await sleep(clock, ms, running.signal))) return;
    }
    await this.say({ id, result: { content: [{ type: 'text', text: `${tool} ${token}${pad}` }] } });
  }

  /** What it heard; `null` if it was stopped. */
  async #converse(
    script: readonly ScriptStep[],
    related: JsonRpcId | undefined,
    progressToken: JsonRpcId | undefined,
    signal: AbortSignal,
  ): Promise<string | null> {
    const heard: string[] = [];
    const log = (data: unknown): Promise<void> =>
      this.say({ method: 'notifications/message', params: { level: 'info', data } }, related);
    for (const step of script) {
      if (step.ms !== undefined && !(await sleep(this.#options.clock, step.ms, signal))) return null;
      if (step.log !== undefined) await log(step.log);
      if (step.drift !== undefined) await log(this.#options.worker);
      if (step.progress !== undefined)
        await this.say(
          { method: 'notifications/progress', params: { progressToken, progress: step.progress } },
          related,
        );
      if (step.ask === undefined) continue;
      const answer = await this.#askFor(step, heard, related, signal);
      if (signal.aborted) return null;
      heard.push(this.#options.mishears === true ? `not ${answer}` : answer);
    }
    return heard.join();
  }

  async #askFor(
    { ask, method = 'elicitation/create', patienceMs }: ScriptStep,
    heard: readonly string[],
    related: JsonRpcId | undefined,
    signal: AbortSignal,
  ): Promise<string> {
    const id = ++this.#asked;
    const answered = new Promise<string>((resolve) => {
      this.#answers.set(id, ({ result, error }) => {
        resolve(error?.message ?? String((result as { text?: unknown } | undefined)?.text));
      });
      signal.addEventListener('abort', () => {
        resolve('stopped');
      });
    });
    await this.say({ id, method, params: { message: ask, heard } }, related);
    if (patienceMs === undefined) return answered;
    const timeout = sleep(this.#options.clock, patienceMs, signal).then(() => 'none');
    const answer = await Promise.race([answered, timeout]);
    if (answer === 'none' && !signal.aborted)
      await this.say({ method: 'notifications/cancelled', params: { requestId: id, reason: 'timeout' } }, related);
    return answer;
  }
}

export function createScriptedHost(options: ScriptedHostOptions): ScriptedHost {
  const opened: ScriptedSession[] = [];
  return {
    kind: 'scripted',
    opened,
    async open(context, callbacks) {
      if (options.openMs !== undefined && !(await sleep(options.clock, options.openMs, context.signal)))
        throw new HostError('HOST_GONE', 'the session ended while its server was starting');
      const session = new ScriptedSession(options, context, callbacks);
      opened.push(session);
      return session;
    },
    async close() {
      await Promise.all(opened.map((session) => session.close()));
    },
  };
}
