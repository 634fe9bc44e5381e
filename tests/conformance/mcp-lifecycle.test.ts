/** What MCP says of the life of a session and of its calls, from client to server: docs/reference/mcp-rules.md. */
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { exchange, makeScratchFolder, RawClient, startThroughline, within } from '@throughline/testkit/processes';
import type { HttpAnswer } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const SERVER = fileURLToPath(new URL('rules-server.ts', import.meta.url));
const REVISIONS = ['2025-03-26', '2025-06-18', '2025-11-25'] as const;
const ELICITATION = { elicitation: {} };
const LIMIT_MS = 60_000;

const resources = new AsyncDisposableStack();
let url = '';
beforeAll(async () => {
  const folder = resources.use(makeScratchFolder()).path;
  url = resources.use(await startThroughline('serve', { folder, args: ['--module', SERVER] })).url;
}, 90_000);
afterAll(() => resources.disposeAsync(), 60_000);

interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number };
}
const said = (answer: HttpAnswer): Message[] => answer.events().map(({ data }) => JSON.parse(data) as Message);
const toEnd = async (answer: HttpAnswer): Promise<Message[]> => {
  expect(await within('the stream to close', answer.closed, LIMIT_MS)).toBe('end');
  return said(answer);
};

async function initialize(protocolVersion: string): Promise<Message | undefined> {
  const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'letter', version: '1' } };
  const answer = await exchange(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  });
  expect(answer.status).toBe(200);
  return (await toEnd(answer)).at(-1);
}

describe('initialize', () => {
  it.each(REVISIONS)(
    '[MCP-L1] asked for %s, the server speaks it',
    async (asked) => {
      expect((await initialize(asked))?.result).toMatchObject({ protocolVersion: asked });
    },
    90_000,
  );

  it.each(['1999-01-01', '2026-07-28', 'nonsense'])(
    '[MCP-L1] asked for %s, it names the latest that it speaks, in a result',
    async (asked) => {
      expect((await initialize(asked))?.result).toMatchObject({ protocolVersion: '2025-11-25' });
    },
    90_000,
  );
});

describe.each(REVISIONS)('a session of %s', { timeout: 120_000 }, (version) => {
  const connect = (capabilities = {}): Promise<RawClient> => RawClient.connect(url, { version, capabilities });

  it('[MCP-L3] the server of a session knows what its client can do, and of no other', async () => {
    const clients = [await connect(ELICITATION), await connect({ sampling: {}, roots: { listChanged: true } })];
    const known = clients.map(async (client) => (await toEnd(await client.callTool(url, 'client_can'))).at(-1)?.result);
    const [elicits, samples] = await Promise.all(known);
    expect(JSON.stringify(elicits)).toContain('elicitation');
    expect(JSON.stringify(elicits)).not.toContain('sampling');
    expect(JSON.stringify(samples)).toContain('{\\"sampling\\":{},\\"roots\\":{\\"listChanged\\":true}}');
  });

  it('[MCP-L3] what it did not declare it is not asked, and its server hears so at once', async () => {
    const client = await connect(ELICITATION);
    const listening = await client.listen(url);
    const messages = await toEnd(await client.callTool(url, 'ask_anyway'));
    expect(messages.map(({ method }) => method)).toEqual([undefined]);
    const [{ text }] = messages[0]?.result?.['content'] as [{ text: string }];
    expect(JSON.parse(text)).toEqual([
      [-32601, { roots: {} }],
      [-32601, { sampling: {} }],
      [-32602, { elicitation: { url: {} } }],
    ]);
    expect(said(listening)).toEqual([]);
    listening.cut();
  });

  it('[MCP-L4] ping is answered with an empty result while a call runs, and so is a ping of a moment before', async () => {
    const client = await connect();
    const running = await client.callTool(url, 'countdown', { from: 100_000, intervalMs: 50 }, 'long');
    const pings = [await client.request(url, 'ping', {}, 'p1'), await client.request(url, 'ping', {}, 'p2')];
    for (const [place, ping] of pings.entries())
      expect(await toEnd(ping)).toEqual([{ jsonrpc: '2.0', id: `p${place + 1}`, result: {} }]);
    await client.notify(url, 'notifications/cancelled', { requestId: 'long' });
    await toEnd(running);
  });

  it('[MCP-P5] a cancelled call ends without a response; a cancel of nothing, or of initialize, changes nothing', async () => {
    const client = await connect();
    const running = await client.callTool(url, 'countdown', { from: 100_000, intervalMs: 50 }, 'long');
    await running.until('a step', ({ data }) => data.includes('"progress"'), LIMIT_MS);
    for (const requestId of ['never', 1])
      expect((await client.notify(url, 'notifications/cancelled', { requestId })).status).toBe(202);
    expect((await client.notify(url, 'notifications/cancelled', { requestId: 'long' })).status).toBe(202);
    expect((await toEnd(running)).filter(({ method }) => method === undefined)).toEqual([]);
    expect((await client.notify(url, 'notifications/cancelled', { requestId: 'long' })).status).toBe(202);
    expect(await toEnd(await client.request(url, 'ping', {}, 'p'))).toEqual([{ jsonrpc: '2.0', id: 'p', result: {} }]);
  });

  it('[MCP-P6] a question that its server gives up is withdrawn from the client, on the stream where it was asked', async () => {
    const client = await connect(ELICITATION);
    const [question, withdrawn, answer] = await toEnd(await client.callTool(url, 'ask_briefly', { ms: 300 }));
    expect(question?.method).toBe('elicitation/create');
    expect(withdrawn).toMatchObject({ method: 'notifications/cancelled', params: { requestId: question?.id } });
    expect(answer?.result).toMatchObject({ content: [{ text: 'gave up' }] });
  });

  it('[MCP-G3] what a server asks in a call is asked on the stream of that call, though the client listens elsewhere', async () => {
    const client = await connect(ELICITATION);
    const listening = await client.listen(url);
    expect(listening.status).toBe(200);
    const [other, asking] = [
      await client.callTool(url, 'countdown', { from: 100_000, intervalMs: 50 }, 'other'),
      await client.callTool(url, 'ask_briefly', { ms: 300 }),
    ];
    expect((await toEnd(asking)).map(({ method }) => method)).toEqual([
      'elicitation/create',
      'notifications/cancelled',
      undefined,
    ]);
    await client.notify(url, 'notifications/cancelled', { requestId: 'other' });
    const asked = (await toEnd(other)).filter(({ method }) => method !== 'notifications/progress');
    expect(asked).toEqual([]);
    expect(said(listening)).toEqual([]);
    listening.cut();
  });

  it('[MCP-C] what is wrong with a request for its server is told in a response, with 200', async () => {
    const client = await connect();
    const unknown = await client.request(url, 'no/such', {}, 'u');
    expect(unknown.status).toBe(200);
    expect(await toEnd(unknown)).toMatchObject([{ id: 'u', error: { code: -32601 } }]);
  });
});

describe('the official client v2 that speaks 2026-07-28 as well', () => {
  const connect = async (mode: 'auto' | { pin: string }): Promise<Client> => {
    const client = new Client({ name: 'both', version: '1' }, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return client;
  };

  it('[GW-VERSION] finds that there are sessions here, and goes on with them', async () => {
    const client = await connect('auto');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('countdown');
    const result = await client.callTool({ name: 'test_simple_text', arguments: {} });
    expect(result).toMatchObject({ content: [{ type: 'text' }] });
    await client.close();
  }, 90_000);

  it('[GW-VERSION] pinned to 2026-07-28, hears which revisions are spoken here', async () => {
    await expect(connect({ pin: '2026-07-28' })).rejects.toMatchObject({
      code: -32022,
      data: { supported: [...REVISIONS], requested: '2026-07-28' },
    });
  }, 90_000);
});
