/** An MCP server without a process or an SDK: tools that do what their names say, and a ledger of what ran. */
import { sleep } from '@throughline/log';
import type { Clock } from '@throughline/log';
import type { JsonRpcId, JsonRpcMessage, JsonRpcRequest } from '@throughline/protocol';
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
};

interface CallArguments {
  readonly token?: string;
  readonly ms?: number;
  readonly count?: number;
  readonly bytes?: number;
}

export class ScriptedSession implements HostSession {
  readonly context: HostContext;
  readonly callbacks: HostCallbacks;
  readonly received: JsonRpcMessage[] = [];
  isClosed = false;
  readonly #options: ScriptedHostOptions;
  readonly #running = new Map<JsonRpcId, AbortController>();
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
    else if ('method' in message && message.method === 'notifications/cancelled')
      this.#running.get(message.params?.['requestId'] as JsonRpcId)?.abort();
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
    const { token = '', ms = 0, count = 1, bytes = 0 } = (request.params?.['arguments'] ?? {}) as CallArguments;
    const { clock, worker, runs } = this.#options;
    const running = new AbortController();
    this.#running.set(id, running);
    runs.push({ worker, tool, session: this.context.sessionId, token, atMs: clock.monoMs() });
    const progressToken = (request.params?.['_meta'] as { progressToken?: JsonRpcId } | undefined)?.progressToken;
    const pad = 'x'.repeat(bytes);
    const step = (progress: number): Promise<void> =>
      this.say({ method: 'notifications/progress', params: { progressToken, progress, pad } }, id);
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
