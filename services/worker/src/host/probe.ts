/** Starts a server once, to see that it works and what it offers. */
import { deadline } from '@throughline/log';
import type { Clock } from '@throughline/log';
import type { JsonRpcId, JsonRpcMessage, JsonRpcResponse } from '@throughline/protocol';
import { diagnose } from './diagnosable.ts';
import { HostError } from './host.ts';
import type { HostSession, McpHost } from './host.ts';

export interface ToolTraits {
  /** Annotated `readOnlyHint`. */
  readonly readOnly: boolean;
  /** Annotated `idempotentHint`. */
  readonly idempotent: boolean;
}

export interface ServerProfile {
  /** As the server said it; `{}` if it said none. */
  readonly serverInfo: Readonly<Record<string, unknown>>;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** By tool name; empty without the tools capability. */
  readonly tools: ReadonlyMap<string, ToolTraits>;
}

export interface ProbeOptions {
  /** Milliseconds for the whole probe. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

const MAX_PAGES = 1000;
const MAX_TOOLS = 20_000;
const PROBE_VERSION = '2025-11-25';

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** Requests and responses over one session, with the server's own requests answered as a plain client does. */
function createProbeClient(getSession: () => Promise<HostSession>): {
  readonly onMessage: (message: JsonRpcMessage) => Promise<void>;
  request(method: string, params: Fields): Promise<Fields>;
  notify(method: string): Promise<void>;
} {
  const waiting = new Map<JsonRpcId, (response: JsonRpcResponse) => void>();
  let lastId = 0;
  const deliver = async (message: JsonRpcMessage): Promise<void> => {
    const session = await getSession();
    await session.deliver(message, { canPoll: false });
  };
  return {
    onMessage(message) {
      if (!('method' in message)) {
        if (message.id !== null) waiting.get(message.id)?.(message);
      } else if ('id' in message) {
        const answer: JsonRpcMessage =
          message.method === 'ping'
            ? { jsonrpc: '2.0', id: message.id, result: {} }
            : { jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'Method not found' } };
        void deliver(answer).catch(() => undefined);
      }
      return Promise.resolve();
    },
    async request(method, params) {
      lastId += 1;
      const id = `probe-${String(lastId)}`;
      const answered = new Promise<JsonRpcResponse>((resolve) => {
        waiting.set(id, resolve);
      });
      await deliver({ jsonrpc: '2.0', id, method, params });
      const response = await answered;
      waiting.delete(id);
      if (response.error !== undefined) {
        const { code, message } = response.error;
        throw new HostError('HOST_CONFIG', `it answered ${method} with error ${String(code)}: ${message}`);
      }
      return fieldsOf(response.result);
    },
    notify: (method) => deliver({ jsonrpc: '2.0', method }),
  };
}

async function listTools(
  request: (method: string, params: Fields) => Promise<Fields>,
): Promise<Map<string, ToolTraits>> {
  const tools = new Map<string, ToolTraits>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const result = await request('tools/list', cursor === undefined ? {} : { cursor });
    const list: readonly unknown[] = Array.isArray(result['tools']) ? result['tools'] : [];
    for (const item of list) {
      const tool = fieldsOf(item);
      if (typeof tool['name'] !== 'string') continue;
      const annotations = fieldsOf(tool['annotations']);
      tools.set(tool['name'], {
        readOnly: annotations['readOnlyHint'] === true,
        idempotent: annotations['idempotentHint'] === true,
      });
    }
    const next = result['nextCursor'];
    if (typeof next !== 'string') return tools;
    if (next === cursor || tools.size > MAX_TOOLS) break;
    cursor = next;
  }
  throw new HostError('HOST_CONFIG', `its tools/list does not end (${String(tools.size)} tools so far)`);
}

/**
 * Opens one instance, initializes it as client `throughline`, lists its tools, closes it. Rejects with a `HostError`
 * that says what happened: `HOST_CONFIG` if it cannot start or answers with an error, `HOST_GONE` if it died or `signal`
 * aborted, `HOST_TIMEOUT` if it did not answer in time; with the last lines of a child's stderr. SPEC: HOST-PROBE-*.
 */
export async function probeServer(host: McpHost, options: ProbeOptions): Promise<ServerProfile> {
  const limit = deadline(options.clock, options.timeoutMs, options.signal);
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const ended = new AbortController();
  let step = 'start';
  let session: HostSession | undefined;
  const onLimit = (): void => {
    const details = session === undefined ? '' : diagnose(session);
    const suffix = details === '' ? '' : `; ${details}`;
    failed.reject(
      limit.expired()
        ? new HostError('HOST_TIMEOUT', `it did not answer ${step} in ${String(options.timeoutMs)} ms${suffix}`)
        : new HostError('HOST_GONE', `the probe was stopped${suffix}`),
    );
  };
  limit.signal.addEventListener('abort', onLimit, { once: true });
  if (limit.signal.aborted) onLimit();

  const opening = Promise.withResolvers<HostSession>();
  opening.promise.catch(() => undefined);
  const client = createProbeClient(() => opening.promise);
  const probe = async (): Promise<ServerProfile> => {
    const opened = await host.open(
      { sessionId: 'probe', principal: 'probe', signal: ended.signal },
      {
        onMessage: client.onMessage,
        onCloseStream: () => undefined,
        onGone(reason, details = '') {
          const words = details === '' ? reason : `${reason}; ${details}`;
          failed.reject(new HostError('HOST_GONE', `it ended before it answered ${step}: ${words}`));
        },
      },
    );
    session = opened;
    opening.resolve(opened);
    const request = (method: string, params: Fields): Promise<Fields> => {
      step = method;
      return client.request(method, params);
    };
    const initialized = await request('initialize', {
      protocolVersion: PROBE_VERSION,
      capabilities: {},
      clientInfo: { name: 'throughline', version: '0.1.0' },
    });
    await client.notify('notifications/initialized');
    const capabilities = fieldsOf(initialized['capabilities']);
    const tools = capabilities['tools'] === undefined ? new Map<string, ToolTraits>() : await listTools(request);
    return { serverInfo: fieldsOf(initialized['serverInfo']), capabilities, tools };
  };
  try {
    const probing = probe();
    probing.catch(() => undefined);
    return await Promise.race([probing, failed.promise]);
  } finally {
    limit.signal.removeEventListener('abort', onLimit);
    limit.dispose();
    // Also closes an instance that is still starting.
    ended.abort();
    await session?.close();
  }
}
