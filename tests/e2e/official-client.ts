/** The official TypeScript clients of both lines, unmodified, behind one face. */
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

import type { ClientLine } from './client-lines.ts';
import type { Login } from './oauth-login.ts';

export { CLIENT_LINES } from './client-lines.ts';
export type { ClientLine } from './client-lines.ts';

export interface CallOptions {
  onProgress?(progress: number): void;
  /** Milliseconds. Default: 30,000. */
  readonly timeoutMs?: number;
}

export interface OfficialClient extends AsyncDisposable {
  readonly line: ClientLine;
  /** `undefined` before the first answer. */
  sessionId(): string | undefined;
  serverName(): string | undefined;
  toolNames(): Promise<readonly string[]>;
  /** The text of the result. Rejects with the client's own error. */
  callTool(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<string>;
  ping(): Promise<void>;
  setLogLevel(level: 'debug' | 'info' | 'warning' | 'error'): Promise<void>;
  /** DELETE of the session. */
  terminate(): Promise<void>;
  /** Log messages received, as their data. */
  readonly logged: readonly unknown[];
  /** What the transport reported. */
  readonly errors: readonly Error[];
}

export interface ConnectOptions {
  readonly fetch?: typeof fetch;
  /** Without: a fetch of one's own decides. */
  readonly url?: string;
  /** Without: no token is sent. */
  readonly login?: Login;
  /** Called with the data of each log message, as it is handled. */
  onLog?(data: unknown): void;
  /** The person: is shown a form, and answers it. Default: answers at once. */
  elicit?(message: string): Promise<Elicited>;
}

export interface Elicited {
  readonly action: 'accept' | 'decline' | 'cancel';
  readonly content?: Record<string, string>;
}

const SAMPLED = { role: 'assistant', model: 'test-model', content: { type: 'text', text: 'sampled' } } as const;
const ELICITED: Elicited = { action: 'accept', content: { answer: 'forty-two' } };
const CAPABILITIES = { sampling: {}, elicitation: {} };
const DEFAULT_URL = 'http://127.0.0.1/mcp';

/** Connects: `initialize` is answered and the standalone stream is asked for. It answers sampling and elicitation. */
export async function connectOfficial(line: ClientLine, options: ConnectOptions): Promise<OfficialClient> {
  return line === 'v1' ? await connectV1(options) : await connectV2(options);
}

function textOf(result: unknown): string {
  const { content } = result as { content?: readonly { readonly type: string; readonly text?: string }[] };
  return content?.map(({ text }) => text ?? '').join('\n') ?? '';
}

async function connectV1({ fetch, url = DEFAULT_URL, login, elicit, onLog }: ConnectOptions): Promise<OfficialClient> {
  const client = new ClientV1({ name: 'official-v1', version: '1.0.0' }, { capabilities: CAPABILITIES });
  const transport = new TransportV1(new URL(url), {
    ...(fetch === undefined ? {} : { fetch }),
    ...(login === undefined ? {} : { authProvider: login }),
  });
  const logged: unknown[] = [];
  const errors: Error[] = [];
  client.onerror = (error) => errors.push(error);
  client.setRequestHandler(CreateMessageRequestSchema, () => SAMPLED);
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => ({
    ...((await elicit?.(params.message)) ?? ELICITED),
  }));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    logged.push(params.data);
    onLog?.(params.data);
  });
  await client.connect(transport);
  return {
    line: 'v1',
    logged,
    errors,
    sessionId: () => transport.sessionId,
    serverName: () => client.getServerVersion()?.name,
    toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
    async callTool(name, args = {}, { onProgress, timeoutMs = 30_000 } = {}) {
      const result = await client.callTool({ name, arguments: args }, undefined, {
        timeout: timeoutMs,
        ...(onProgress === undefined ? {} : { onprogress: ({ progress }) => onProgress(progress) }),
      });
      return textOf(result);
    },
    ping: async () => void (await client.ping()),
    setLogLevel: async (level) => void (await client.setLoggingLevel(level)),
    terminate: () => transport.terminateSession(),
    [Symbol.asyncDispose]: () => client.close(),
  };
}

async function connectV2({ fetch, url = DEFAULT_URL, login, elicit, onLog }: ConnectOptions): Promise<OfficialClient> {
  const client = new ClientV2({ name: 'official-v2', version: '1.0.0' }, { capabilities: CAPABILITIES });
  const transport = new TransportV2(new URL(url), {
    ...(fetch === undefined ? {} : { fetch }),
    ...(login === undefined ? {} : { authProvider: login }),
  });
  const logged: unknown[] = [];
  const errors: Error[] = [];
  client.onerror = (error) => errors.push(error);
  client.setRequestHandler('sampling/createMessage', () => SAMPLED);
  client.setRequestHandler('elicitation/create', async ({ params }) => ({
    ...((await elicit?.(params.message)) ?? ELICITED),
  }));
  client.setNotificationHandler('notifications/message', ({ params }) => {
    logged.push(params.data);
    onLog?.(params.data);
  });
  await client.connect(transport);
  return {
    line: 'v2',
    logged,
    errors,
    sessionId: () => transport.sessionId,
    serverName: () => client.getServerVersion()?.name,
    toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
    async callTool(name, args = {}, { onProgress, timeoutMs = 30_000 } = {}) {
      const result = await client.callTool(
        { name, arguments: args },
        {
          timeout: timeoutMs,
          ...(onProgress === undefined ? {} : { onprogress: ({ progress }) => onProgress(progress) }),
        },
      );
      return textOf(result);
    },
    ping: async () => void (await client.ping()),
    setLogLevel: async (level) => void (await client.setLoggingLevel(level)),
    terminate: () => transport.terminateSession(),
    [Symbol.asyncDispose]: () => client.close(),
  };
}
