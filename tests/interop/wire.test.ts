import { createServer } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exchange, waitUntil } from '@throughline/testkit/processes';
import { expect, it } from 'vitest';
import { startWire } from './wire.ts';

interface Upstream extends AsyncDisposable {
  readonly url: string;
  readonly heads: readonly IncomingHttpHeaders[];
  /** Breaks its answers. */
  breakAll(): void;
}

/** Answers with one event, and keeps the stream open. */
async function startUpstream(): Promise<Upstream> {
  const heads: IncomingHttpHeaders[] = [];
  const server = createServer((incoming, response) => {
    heads.push(incoming.headers);
    incoming.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream', 'mcp-session-id': 'session-1' });
    response.write('id: 1\ndata: one\n\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    heads,
    breakAll: () => server.closeAllConnections(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const post = (url: string, method: string): ReturnType<typeof exchange> =>
  exchange(url, { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 1, method }) });

it('[INTEROP-WIRE] passes events on as they come, and keeps them', async () => {
  await using upstream = await startUpstream();
  await using wire = await startWire(upstream.url);
  const answer = await post(wire.url, 'tools/call');
  await answer.until('the event', ({ data }) => data === 'one');
  expect(wire.answers).toMatchObject([
    {
      httpMethod: 'POST',
      method: 'tools/call',
      status: 200,
      isOpen: true,
      items: [{ kind: 'event', data: 'one', id: '1' }],
    },
  ]);
});

it('[INTEROP-WIRE] an answer that is cut behind it is cut for the client, and it cuts those that fit itself', async () => {
  await using upstream = await startUpstream();
  await using wire = await startWire(upstream.url);
  const [one, two] = [await post(wire.url, 'tools/call'), await post(wire.url, 'ping')];
  expect(wire.cut(({ method }) => method === 'tools/call')).toBe(1);
  expect(await one.closed).toBe('cut');
  expect(wire.answers.map(({ isOpen }) => isOpen)).toEqual([false, true]);
  upstream.breakAll();
  expect(await two.closed).toBe('cut');
});

it('[INTEROP-WIRE] puts another cursor in the place of the client’s, and runs what is to happen before a request, once', async () => {
  await using upstream = await startUpstream();
  await using wire = await startWire(upstream.url);
  wire.rewriteCursor((cursor) => `${cursor}-other`);
  await exchange(wire.url, { method: 'GET', headers: { 'last-event-id': '7' } });
  let runs = 0;
  wire.onceBefore('tools/call', async () => {
    runs++;
    expect(upstream.heads).toHaveLength(2);
  });
  await post(wire.url, 'ping');
  await post(wire.url, 'tools/call');
  await post(wire.url, 'tools/call');
  await waitUntil('all requests', () => upstream.heads.length === 4);
  expect(upstream.heads[0]?.['last-event-id']).toBe('7-other');
  expect(wire.answers[0]?.lastEventId).toBe('7-other');
  expect(runs).toBe(1);
});
