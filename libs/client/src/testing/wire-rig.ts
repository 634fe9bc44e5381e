/** For tests of the faulty server: plays a call over the wire, one connection after the other. */
import { RawClient } from '@throughline/testkit/processes';
import type { HttpAnswer, SseItem } from '@throughline/testkit/processes';
import type { Dialect, FaultName } from './fault-table.ts';
import { startFaultyServer } from './faulty-server.ts';
import type { FaultyServer, FaultyServerOptions } from './faulty-server.ts';

export interface Played extends AsyncDisposable {
  readonly server: FaultyServer;
  readonly client: RawClient;
  /** The answer to the POST of `count` to 6, closed. */
  readonly call: HttpAnswer;
  /** The last id of it. */
  readonly cursor: string;
  /** Resumes at the cursor and waits for the end of the answer. */
  resume(): Promise<HttpAnswer>;
}

/** Calls `count` to 6 with the JSON-RPC id 7; its answer has been cut short when this resolves. */
export async function playCall(
  fault: FaultName,
  dialect: Dialect,
  options: Partial<FaultyServerOptions> = {},
): Promise<Played> {
  const server = await startFaultyServer({ dialect, fault, ...options });
  const client = await RawClient.connect(server.url);
  const call = await client.callTool(server.url, 'count', { to: 6 }, 7);
  await call.closed;
  const cursor = call.lastId() ?? '';
  return {
    server,
    client,
    call,
    cursor,
    async resume() {
      const answer = await client.resume(server.url, cursor);
      await answer.closed;
      return answer;
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/** What the events say: the data of log messages, the text of results. */
export function textsOf(items: readonly SseItem[]): string[] {
  return messagesOf(items).map(({ data }) => {
    const { params, result } = JSON.parse(data) as {
      params?: { data: string };
      result?: { content: { text: string }[] };
    };
    return params?.data ?? result?.content[0]?.text ?? data;
  });
}

export function idsOf(items: readonly SseItem[]): string[] {
  return messagesOf(items).map(({ id }) => id ?? '');
}

function messagesOf(items: readonly SseItem[]): SseItem[] {
  return items.filter(({ kind, data }) => kind === 'event' && data !== '');
}

/** POSTs a call of `count` to 6 with the JSON-RPC id 7 and gives the body of its answer, in the chunks that came. */
export async function callForChunks(server: FaultyServer): Promise<Buffer[]> {
  const client = await RawClient.connect(server.url);
  const response = await fetch(server.url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Mcp-Session-Id': client.sessionId,
      'MCP-Protocol-Version': client.version,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params: { name: 'count', arguments: { to: 6 } },
    }),
    signal: AbortSignal.timeout(10_000),
  });
  const chunks: Buffer[] = [];
  for await (const chunk of response.body ?? []) chunks.push(Buffer.from(chunk));
  return chunks;
}
