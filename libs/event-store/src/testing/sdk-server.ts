/**
 * The HTTP transports of both lines of the official SDK, driven by requests without a network. What the server says is
 * said by the test itself; `initialize` is answered.
 */
import { WebStandardStreamableHTTPServerTransport as TransportV2 } from '@modelcontextprotocol/server';
import { WebStandardStreamableHTTPServerTransport as TransportV1 } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { SessionEvents } from '../session-events.ts';

export type SdkLine = 'v1' | 'v2';
export const SDK_LINES: readonly SdkLine[] = ['v1', 'v2'];

export interface SdkEvent {
  readonly id: string;
  /** `null` where the data is empty. */
  readonly message: {
    readonly method?: string;
    readonly params?: { readonly n?: number };
    readonly result?: unknown;
  } | null;
}

/** An SSE answer that is read as it comes. */
export interface SdkStream {
  readonly status: number;
  readonly body: string;
  readonly events: readonly SdkEvent[];
  /** Resolves when there are so many events. */
  until(count: number): Promise<void>;
  /** Resolves when the server has ended it. */
  readonly ended: Promise<void>;
  cancel(): Promise<void>;
}

export interface SdkServer {
  readonly errors: readonly Error[];
  handle(request: Request): Promise<Response>;
  initialize(): Promise<void>;
  /** POSTs a call; the test answers it. */
  call(id: number): Promise<SdkStream>;
  listen(lastEventId?: string): Promise<SdkStream>;
  /** Says notification number `n`: of the call, or of no call. */
  notify(n: number, call?: number): Promise<void>;
  answer(call: number): Promise<void>;
  close(): Promise<void>;
}

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
} as const;

const URL = 'http://localhost/mcp';
const SSE = 'text/event-stream';

export async function startSdk(line: SdkLine, session: SessionEvents): Promise<SdkServer> {
  const options = { sessionIdGenerator: () => session.sessionId, eventStore: session, keepAliveMs: 0 };
  const transport = line === 'v1' ? new TransportV1(options) : new TransportV2(options);
  const errors: Error[] = [];
  transport.onerror = (error: Error) => errors.push(error);
  transport.onmessage = (message: { readonly id?: unknown; readonly method?: string }) => {
    if (message.method !== 'initialize') return;
    const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'sdk', version: '1' } };
    void transport.send({ jsonrpc: '2.0', id: message.id as number, result });
  };
  await transport.start();
  const headers = { 'mcp-session-id': session.sessionId, 'mcp-protocol-version': '2025-11-25' };
  const post = (message: unknown, own: Record<string, string> = headers): Promise<Response> =>
    transport.handleRequest(
      new Request(URL, {
        method: 'POST',
        headers: { ...own, 'content-type': 'application/json', accept: `application/json, ${SSE}` },
        body: JSON.stringify(message),
      }),
    );
  return {
    errors,
    handle: (request) => transport.handleRequest(request),
    async initialize() {
      await (await post(INITIALIZE, {})).text();
      await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    },
    call: async (id) => readSse(await post({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'x' } })),
    listen: async (lastEventId) =>
      readSse(
        await transport.handleRequest(
          new Request(URL, {
            headers: {
              ...headers,
              accept: SSE,
              ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
            },
          }),
        ),
      ),
    notify: (n, call) =>
      transport.send(
        { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', n, data: n } },
        call === undefined ? undefined : { relatedRequestId: call },
      ),
    answer: (call) => transport.send({ jsonrpc: '2.0', id: call, result: { content: [] } }),
    close: () => transport.close(),
  };
}

async function readSse(answer: Response): Promise<SdkStream> {
  if (answer.body === null || !(answer.headers.get('content-type') ?? '').startsWith(SSE)) {
    const body = await answer.text();
    return {
      status: answer.status,
      body,
      events: [],
      until: () => Promise.resolve(),
      ended: Promise.resolve(),
      cancel: () => Promise.resolve(),
    };
  }
  const events: SdkEvent[] = [];
  const wakes = new Set<() => void>();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const ended = (async () => {
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const field = (name: string): string | undefined =>
          block
            .split('\n')
            .find((row) => row.startsWith(`${name}: `))
            ?.slice(name.length + 2);
        const id = field('id');
        const data = field('data') ?? '';
        if (id !== undefined)
          events.push({ id, message: data === '' ? null : (JSON.parse(data) as SdkEvent['message']) });
      }
      for (const wake of wakes) wake();
    }
  })();
  return {
    status: answer.status,
    body: '',
    events,
    until: (count) =>
      new Promise((resolve) => {
        const wake = (): void => {
          if (events.length < count) return;
          wakes.delete(wake);
          resolve();
        };
        wakes.add(wake);
        wake();
      }),
    ended,
    cancel: () => reader.cancel(),
  };
}

/** The numbers of the notifications of a stream, in order; `result` for an answer. */
export function numbers(stream: SdkStream): readonly (number | 'result')[] {
  return stream.events.flatMap(({ message }): (number | 'result')[] => {
    if (message === null) return [];
    return message.result === undefined ? [message.params?.n ?? -1] : ['result'];
  });
}
