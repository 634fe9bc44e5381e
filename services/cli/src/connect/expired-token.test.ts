/** `throughline connect` whose token expires in the middle of a call, while nobody is there to give another one. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { makeScratchFolder, waitUntil } from '@throughline/testkit/processes';
import { expect, it, onTestFinished, vi } from 'vitest';
import { connectInProcess } from './testing/connect-in-process.ts';

vi.setConfig({ testTimeout: 60_000 });

interface TokenServer {
  readonly url: string;
  /** The one that is good. */
  token: string;
  sessions: number;
  refused: number;
  /** Sessions that were ended by their client. */
  ended: number;
}

/** One call, whose stream is cut after its first event; the answer comes on a resume. */
async function startTokenServer(): Promise<TokenServer> {
  const answer = (id: unknown, value: object): string => JSON.stringify({ jsonrpc: '2.0', id, result: value });
  const stream = (response: ServerResponse, id: string, data: string): ServerResponse => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write(`id: ${id}\ndata: ${data}\n\n`);
    return response;
  };
  const server = createServer((request, response) => {
    void (async () => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      if (request.headers.authorization !== `Bearer ${seen.token}`) {
        seen.refused++;
        response.writeHead(401, { 'WWW-Authenticate': 'Bearer error="invalid_token"' }).end();
        return;
      }
      const { id, method } = JSON.parse(body || '{}') as { id?: number; method?: string };
      if (request.method === 'DELETE') seen.ended++;
      if (request.method === 'DELETE') response.writeHead(204).end();
      else if (request.headers['last-event-id'] === 'first')
        stream(response, 'second', answer(1, { late: true })).end();
      else if (request.method === 'GET') response.writeHead(405).end();
      else if (method === 'initialize') {
        seen.sessions++;
        response.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': `s${seen.sessions}` });
        const info = { name: 'token', version: '1' };
        response.end(answer(id, { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: info }));
      } else if (id === undefined) response.writeHead(202).end();
      else if (id === 1) {
        seen.token = 'another';
        const params = { level: 'info', data: 'began' };
        stream(response, 'first', JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params })).end();
      } else response.writeHead(200, { 'Content-Type': 'application/json' }).end(answer(id, {}));
    })();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const seen: TokenServer = { url, token: 'good', sessions: 0, refused: 0, ended: 0 };
  return seen;
}

it('[CONNECT-AUTH] a call whose resume is not let in waits, others are told so, and a token that comes later goes on in the session', async () => {
  const scratch = makeScratchFolder();
  onTestFinished(() => {
    scratch[Symbol.dispose]();
  });
  const server = await startTokenServer();
  const tokenFile = path.join(scratch.path, 'token');
  writeFileSync(tokenFile, 'good');
  const args = [
    '--token-file',
    tokenFile,
    '--policy',
    'compatible',
    '--state-folder',
    path.join(scratch.path, 'state'),
  ];
  const bridge = connectInProcess(server.url, args, scratch.path);
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
  bridge.type({ id: 0, method: 'initialize', params });
  await bridge.answer(0);
  bridge.type({ method: 'notifications/initialized' });
  bridge.type({ id: 1, method: 'tools/call', params: { name: 'slow' } });
  await waitUntil('resumes that are refused', () => server.refused >= 2, 30_000);
  bridge.type({ id: 2, method: 'tools/call', params: { name: 'other' } });
  expect((await bridge.answer(2)).error?.data).toMatchObject({ code: 'HTTP_STATUS', status: 401, mayHaveRun: false });
  expect(bridge.stderr()).toContain('write a new token to');
  writeFileSync(tokenFile, 'another');
  expect((await bridge.answer(1)).result).toEqual({ late: true });
  bridge.type({ id: 3, method: 'tools/call', params: { name: 'other' } });
  expect((await bridge.answer(3)).result).toEqual({});
  expect(bridge.stderr()).not.toContain('the session is over');
  expect(await bridge.close()).toBe(0);
  expect([server.sessions, server.ended]).toEqual([1, 1]);
});
