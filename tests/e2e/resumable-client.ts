/** Official clients of both lines on the resumable transport, behind the face of `official-client.ts`. */
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema, LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { ResumableTransport } from '@throughline/client';
import type { ResumableTransportOptions } from '@throughline/client';
import type { ClientLine } from './official-client.ts';

export interface ResumableClient extends AsyncDisposable {
  readonly line: ClientLine;
  readonly transport: ResumableTransport;
  readonly logged: readonly unknown[];
  readonly errors: readonly Error[];
  callTool(name: string, args?: Record<string, unknown>, onProgress?: (step: number) => void): Promise<string>;
  setLogLevel(level: 'info' | 'debug'): Promise<void>;
}

const TIMEOUT_MS = 60_000;

function textOf(result: unknown): string {
  const { content } = result as { content?: readonly { readonly text?: string }[] };
  return content?.map(({ text }) => text ?? '').join('\n') ?? '';
}

/** @param onLog is called with the data of each log message, as it is handled. */
export async function connectResumable(
  line: ClientLine,
  url: string,
  options: ResumableTransportOptions = {},
  onLog: (data: unknown) => void = () => undefined,
): Promise<ResumableClient> {
  const transport = new ResumableTransport(url, options);
  const logged: unknown[] = [];
  const log = (data: unknown): void => {
    logged.push(data);
    onLog(data);
  };
  const errors: Error[] = [];
  const progress = (onProgress?: (step: number) => void): { onprogress?: (of: { progress: number }) => void } =>
    onProgress === undefined ? {} : { onprogress: (of) => onProgress(of.progress) };
  if (line === 'v1') {
    const client = new ClientV1({ name: 'resumable-v1', version: '1.0.0' }, { capabilities: { elicitation: {} } });
    client.onerror = (error) => errors.push(error);
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { answer: 'forty-two' } }));
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => log(params.data));
    await client.connect(transport);
    return {
      line,
      transport,
      logged,
      errors,
      callTool: async (name, args = {}, onProgress) =>
        textOf(
          await client.callTool({ name, arguments: args }, undefined, { timeout: TIMEOUT_MS, ...progress(onProgress) }),
        ),
      setLogLevel: async (level) => void (await client.setLoggingLevel(level)),
      [Symbol.asyncDispose]: () => client.close(),
    };
  }
  const client = new ClientV2({ name: 'resumable-v2', version: '1.0.0' }, { capabilities: { elicitation: {} } });
  client.onerror = (error) => errors.push(error);
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { answer: 'forty-two' } }));
  client.setNotificationHandler('notifications/message', ({ params }) => log(params.data));
  await client.connect(transport);
  return {
    line,
    transport,
    logged,
    errors,
    callTool: async (name, args = {}, onProgress) =>
      textOf(await client.callTool({ name, arguments: args }, { timeout: TIMEOUT_MS, ...progress(onProgress) })),
    setLogLevel: async (level) => void (await client.setLoggingLevel(level)),
    [Symbol.asyncDispose]: () => client.close(),
  };
}
