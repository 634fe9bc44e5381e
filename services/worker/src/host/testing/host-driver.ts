/** Drives one hosted session in tests: records what comes, answers what is asked, waits for conditions. */
import type { JsonRpcId, JsonRpcMessage, JsonRpcRequest, JsonRpcResponse } from '@throughline/protocol';
import type { Logger } from '@throughline/telemetry';
import type { HostCallbacks, HostSession, McpHost } from '../host.ts';

export interface Received {
  readonly message: JsonRpcMessage;
  readonly related: JsonRpcId | undefined;
}

export interface HostDriver {
  readonly session: HostSession;
  readonly received: readonly Received[];
  readonly closedStreams: readonly JsonRpcId[];
  readonly goneReasons: readonly string[];
  /** What came with each of them. */
  readonly goneDetails: readonly string[];
  /** Aborts the signal of the session. */
  abort(): void;
  /** Resolves with the first received item that fits, also one that came before. */
  waitFor(fits: (item: Received) => boolean, what?: string): Promise<Received>;
  waitGone(): Promise<string>;
  /** Sends a request and resolves with its response. */
  request(method: string, params?: Record<string, unknown>, canPoll?: boolean): Promise<JsonRpcResponse>;
  /** Calls a tool and resolves with the text of its first content. */
  call(name: string, args?: Record<string, unknown>, meta?: Record<string, unknown>): Promise<string>;
  notify(method: string, params?: Record<string, unknown>): Promise<void>;
  /** `initialize` and `notifications/initialized`; resolves with the result. */
  initialize(): Promise<Record<string, unknown>>;
}

export interface DriverOptions {
  readonly sessionId?: string;
  /** Called before a message counts as taken: the backpressure. */
  readonly onMessage?: (message: JsonRpcMessage) => Promise<void>;
  /** The answer to a request of the server; default: accepts elicitation and samples. */
  readonly answer?: (request: JsonRpcRequest) => Record<string, unknown>;
}

const WAIT_MS = 10_000;

function defaultAnswer(request: JsonRpcRequest): Record<string, unknown> {
  switch (request.method) {
    case 'elicitation/create':
      return { action: 'accept', content: { answer: '42' } };
    case 'sampling/createMessage':
      return { role: 'assistant', model: 'test', content: { type: 'text', text: 'sampled' } };
    default:
      return {};
  }
}

/** The text of a tool result, or the message of a JSON-RPC error. */
export function textOf(response: JsonRpcResponse): string {
  if (response.error !== undefined) return `error ${String(response.error.code)}: ${response.error.message}`;
  const { content } = response.result as { content?: { text?: string }[] };
  return content?.[0]?.text ?? '';
}

export function kindsOf(received: readonly Received[]): readonly string[] {
  return received.map(({ message }) => ('method' in message ? message.method : 'response'));
}

export async function openDriver(host: McpHost, options: DriverOptions = {}): Promise<HostDriver> {
  const received: Received[] = [];
  const closedStreams: JsonRpcId[] = [];
  const goneReasons: string[] = [];
  const goneDetails: string[] = [];
  const watchers = new Set<() => void>();
  const changed = (): void => {
    for (const watcher of [...watchers]) watcher();
  };
  const controller = new AbortController();
  const answer = options.answer ?? defaultAnswer;
  let lastId = 0;

  const until = <T>(look: () => T | undefined, what: string): Promise<T> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        const found = look();
        if (found === undefined) return;
        clearTimeout(timer);
        watchers.delete(check);
        resolve(found);
      };
      const timer = setTimeout(() => {
        watchers.delete(check);
        const seen = received.map(({ message }) => JSON.stringify(message).slice(0, 200)).join('\n');
        reject(new Error(`waited for ${what}; gone: ${goneReasons.join()}; received:\n${seen}`));
      }, WAIT_MS);
      watchers.add(check);
      check();
    });

  const callbacks: HostCallbacks = {
    async onMessage(message, related) {
      await options.onMessage?.(message);
      received.push({ message, related });
      changed();
      if ('method' in message && 'id' in message) {
        const reply = { jsonrpc: '2.0', id: message.id, result: answer(message) } as const;
        void session.deliver(reply, { canPoll: true }).catch(() => undefined);
      }
    },
    onCloseStream(related) {
      closedStreams.push(related);
      changed();
    },
    onGone(reason, details) {
      goneReasons.push(reason);
      goneDetails.push(details ?? '');
      changed();
    },
  };
  const session = await host.open(
    { sessionId: options.sessionId ?? 'session-1', principal: 'tester', signal: controller.signal },
    callbacks,
  );

  const driver: HostDriver = {
    session,
    received,
    closedStreams,
    goneReasons,
    goneDetails,
    abort: () => {
      controller.abort();
    },
    waitFor: (fits, what = 'a message') => until(() => received.find(fits), what),
    waitGone: () => until(() => goneReasons[0], 'the end'),
    async request(method, params, canPoll = true) {
      lastId += 1;
      const id = `c${String(lastId)}`;
      const message = { jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) } as const;
      await session.deliver(message, { canPoll });
      const item = await driver.waitFor(
        (one) => !('method' in one.message) && one.message.id === id,
        `the answer to ${method}`,
      );
      return item.message as JsonRpcResponse;
    },
    async call(name, args = {}, meta) {
      const params = { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) };
      return textOf(await driver.request('tools/call', params));
    },
    notify: (method, params) =>
      session.deliver({ jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) }, { canPoll: true }),
    async initialize() {
      const response = await driver.request('initialize', {
        protocolVersion: '2025-11-25',
        capabilities: { elicitation: { form: {} }, sampling: {} },
        clientInfo: { name: 'test', version: '1' },
      });
      await driver.notify('notifications/initialized');
      return response.result as Record<string, unknown>;
    },
  };
  return driver;
}

/** A logger that keeps its lines. */
export function createRecordingLogger(): {
  readonly lines: { readonly level: string; readonly event: string; readonly fields: Record<string, unknown> }[];
  readonly logger: Logger;
} {
  const lines: { level: string; event: string; fields: Record<string, unknown> }[] = [];
  const make = (bound: Record<string, unknown>): Logger => {
    const write =
      (level: string) =>
      (event: string, fields: Record<string, unknown> = {}) => {
        lines.push({ level, event, fields: { ...bound, ...fields } });
      };
    return {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      child: (fields) => make({ ...bound, ...fields }),
    };
  };
  return { lines, logger: make({}) };
}
