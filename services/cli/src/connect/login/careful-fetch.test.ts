import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isSafe, makeCarefulFetch } from './careful-fetch.ts';

let respond: (response: ServerResponse) => void = () => undefined;
const server = createServer((_request, response) => {
  respond(response);
});
let here: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  here = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

describe('what a server names', () => {
  it.each<[target: string, serverUrl: string, allowHttp: boolean, isAllowed: boolean]>([
    ['https://as.example/', 'https://mcp.example/', false, true],
    ['https://as.example/', 'http://127.0.0.1/', false, true],
    ['http://as.example/', 'https://mcp.example/', false, false],
    ['http://as.example/', 'https://mcp.example/', true, true],
    ['http://127.0.0.1:8080/', 'http://localhost/', false, true],
    ['http://[::1]:8080/', 'http://127.0.0.1/', false, true],
    ['http://127.0.0.1:8080/', 'https://mcp.example/', true, false],
    ['https://localhost/', 'https://mcp.example/', false, false],
    ['https://me:secret@as.example/', 'https://mcp.example/', false, false],
    ['file:///etc/passwd', 'http://127.0.0.1/', true, false],
    ['javascript:alert(1)', 'http://127.0.0.1/', true, false],
  ])(
    '[CONNECT-LOGIN-SAFE] %s by %s (without TLS: %s) is asked and shown: %s',
    (target, serverUrl, allowHttp, isAllowed) => {
      expect(isSafe(new URL(target), { serverUrl: new URL(serverUrl), allowHttp })).toBe(isAllowed);
    },
  );

  it('[CONNECT-LOGIN-SAFE] is not asked if it may not be, and read within a bound', async () => {
    const make = (serverUrl: string): ReturnType<typeof makeCarefulFetch> =>
      makeCarefulFetch({ serverUrl: new URL(serverUrl), allowHttp: false, signal: new AbortController().signal });
    await expect(make('https://mcp.example/')(here)).rejects.toThrow('has no TLS or no business here');
    respond = (response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"a":1}');
    };
    expect(await (await make(here)(here)).json()).toEqual({ a: 1 });
    respond = (response) => {
      response.writeHead(200).end(Buffer.alloc(1024 * 1024 + 1));
    };
    await expect(make(here)(here)).rejects.toThrow('more than 1 MiB');
  });

  it('[CONNECT-LOGIN-FAILS] who is out of reach is told with what the system says of it', async () => {
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(gone.address() as AddressInfo).port}/`;
    await new Promise((resolve) => gone.close(resolve));
    const ask = makeCarefulFetch({ serverUrl: new URL(here), allowHttp: false, signal: new AbortController().signal });
    await expect(ask(url)).rejects.toThrow(/out of reach: .*ECONNREFUSED/);
  });

  it('[CONNECT-LOGIN-FAILS] trouble that passes is told apart: no answer, too many requests, a failure of the server', async () => {
    const stop = new AbortController();
    const careful = makeCarefulFetch({ serverUrl: new URL(here), allowHttp: false, signal: stop.signal });
    for (const status of [429, 500, 503]) {
      respond = (response) => {
        response.writeHead(status).end();
      };
      await expect(careful(here)).rejects.toMatchObject({ name: 'OutOfReachError' });
    }
    respond = (response) => {
      response.writeHead(404).end();
    };
    expect((await careful(here)).status).toBe(404);
    await expect(careful('http://127.0.0.1:9/')).rejects.toMatchObject({ name: 'OutOfReachError' });
    respond = () => {
      stop.abort();
    };
    await expect(careful(here)).rejects.toMatchObject({ name: 'OutOfReachError' });
  });
});
