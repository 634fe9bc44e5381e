/** Official clients of both lines that start `throughline connect` as their server. */
import { existsSync, readFileSync } from 'node:fs';
import process from 'node:process';
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { throughlineCommand, waitUntil } from '@throughline/testkit/processes';
import type { ClientLine } from './official-client.ts';

const TIMEOUT_MS = 60_000;

/** As any client is told to start it. */
export const COMMAND = process.execPath;
export function commandLine(url: string, args: readonly string[]): string[] {
  return throughlineCommand('connect', url, ...args).args;
}

export interface ConnectedClient extends AsyncDisposable {
  readonly pid: number;
  readonly logged: readonly unknown[];
  /** Steps of progress in the order in which they came over the pipe: the SDK loses some that a result follows closely. */
  readonly steps: readonly number[];
  readonly listChanges: () => number;
  readonly stderr: () => string;
  readonly isClosed: () => boolean;
  callTool(name: string, args?: Record<string, unknown>, signal?: AbortSignal): Promise<string>;
  toolNames(): Promise<readonly string[]>;
  subscribe(uri: string): Promise<void>;
  /** Closes stdin, and ends it. */
  close(): Promise<void>;
}

export interface ConnectThrough {
  readonly url: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly clientName?: string;
}

const SAMPLED = { role: 'assistant', model: 'test-model', content: { type: 'text', text: 'sampled' } } as const;
const ELICITED = { action: 'accept', content: { answer: 'forty-two' } } as const;
const CAPABILITIES = { sampling: {}, elicitation: {} };

export async function connectThrough(
  line: ClientLine,
  { url, args, cwd, clientName = 'stdio' }: ConnectThrough,
): Promise<ConnectedClient> {
  const info = { name: clientName, version: '1.0.0' };
  const start = { command: COMMAND, args: commandLine(url, args), cwd, stderr: 'pipe' } as const;
  const logged: unknown[] = [];
  const steps: number[] = [];
  let changes = 0;
  let stderr = '';
  let isClosed = false;
  const transport = line === 'v1' ? new StdioV1(start) : new StdioV2(start);
  transport.stderr?.on('data', (data: Buffer) => (stderr += data.toString()));
  const tap = (): void => {
    const deliver = transport.onmessage as ((message: object) => void) | undefined;
    const tapped = (message: object): void => {
      const { method, params } = message as { method?: string; params?: { progress?: number } };
      if (method === 'notifications/progress') steps.push(params?.progress ?? Number.NaN);
      deliver?.(message);
    };
    transport.onmessage = tapped;
  };
  const closed = (): void => void (isClosed = true);
  const common = {
    logged,
    steps,
    listChanges: () => changes,
    stderr: () => stderr,
    isClosed: () => isClosed,
  };
  if (line === 'v1') {
    const client = new ClientV1(info, { capabilities: CAPABILITIES });
    client.onclose = closed;
    client.setRequestHandler(CreateMessageRequestSchema, () => SAMPLED);
    client.setRequestHandler(ElicitRequestSchema, () => ({ ...ELICITED }));
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logged.push(params.data));
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
    await client.connect(transport, { timeout: TIMEOUT_MS });
    tap();
    return {
      ...common,
      pid: transport.pid ?? 0,
      async callTool(name, given = {}, signal) {
        const options = {
          timeout: TIMEOUT_MS,
          onprogress: () => undefined,
          ...(signal === undefined ? {} : { signal }),
        };
        return textOf(await client.callTool({ name, arguments: given }, undefined, options));
      },
      toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
      subscribe: async (uri) => void (await client.subscribeResource({ uri })),
      close: () => client.close(),
      [Symbol.asyncDispose]: () => client.close(),
    };
  }
  const client = new ClientV2(info, { capabilities: CAPABILITIES });
  client.onclose = closed;
  client.setRequestHandler('sampling/createMessage', () => SAMPLED);
  client.setRequestHandler('elicitation/create', () => ({ ...ELICITED }));
  client.setNotificationHandler('notifications/message', ({ params }) => void logged.push(params.data));
  client.setNotificationHandler('notifications/tools/list_changed', () => void changes++);
  await client.connect(transport, { timeout: TIMEOUT_MS });
  tap();
  return {
    ...common,
    pid: transport.pid ?? 0,
    async callTool(name, given = {}, signal) {
      const options = { timeout: TIMEOUT_MS, onprogress: () => undefined, ...(signal === undefined ? {} : { signal }) };
      return textOf(await client.callTool({ name, arguments: given }, options));
    },
    toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
    subscribe: async (uri) => void (await client.subscribeResource({ uri })),
    close: () => client.close(),
    [Symbol.asyncDispose]: () => client.close(),
  };
}

function textOf(result: unknown): string {
  const { content } = result as { content?: readonly { readonly text?: string }[] };
  return content?.map(({ text }) => text ?? '').join('\n') ?? '';
}

/** Ends the bridge as the system does when there is no memory left. */
export async function killBridge(client: ConnectedClient): Promise<void> {
  process.kill(client.pid, 'SIGKILL');
  await waitUntil('the client to see it', client.isClosed, TIMEOUT_MS);
}

export function readPlace(file: string): { readonly sessionId: string } | null {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { sessionId: string }) : null;
}
