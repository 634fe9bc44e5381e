import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { systemClock } from '@throughline/log';
import { afterEach, describe, expect, it } from 'vitest';
import { readAll } from '../testing/http-rig.ts';
import { listen } from './listen.ts';
import type { Listening, ListenOptions } from './listen.ts';

let open: Listening | null = null;
afterEach(() => open?.close());

async function start(options: Partial<ListenOptions> = {}): Promise<Listening> {
  open = await listen(
    {
      host: '127.0.0.1',
      port: 0,
      flag: '--listen',
      clock: systemClock,
      maxSockets: 10,
      onError: () => undefined,
      ...options,
    },
    (request, response) => {
      request.resume();
      if (request.url === '/hang') response.write('begun');
      else request.on('end', () => response.end('served'));
    },
  );
  return open;
}

async function raw(text: string): Promise<Socket> {
  const socket = connect(open!.port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

const PATIENCE = { headers: 200, request: 400, check: 50 };

describe('sockets', () => {
  it('[GW-LIMIT] a client that dribbles the head of its request is cut off', async () => {
    await start({ patience: PATIENCE });
    expect(await readAll(await raw('GET / HTTP/1.1\r\nHost: a\r\nX: '))).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('[GW-LIMIT] a client that dribbles its body is cut off', async () => {
    await start({ patience: PATIENCE });
    expect(await readAll(await raw('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n1'))).toMatch(
      /^HTTP\/1\.1 408 /,
    );
  });

  it('[GW-LIMIT] a client that connects and says nothing is cut off', async () => {
    await start({ patience: PATIENCE });
    expect(await readAll(await raw(''))).toMatch(/^(HTTP\/1\.1 408 |$)/);
  });

  it('[GW-LIMIT] a client that is answered before its body has come, and goes on with it for ever, is cut off', async () => {
    await start({ patience: PATIENCE });
    const socket = await raw('POST /hang HTTP/1.1\r\nHost: a\r\nContent-Length: 99000000000\r\n\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
    const timer = setInterval(() => socket.write('x'.repeat(1000)), 20);
    await readAll(socket);
    clearInterval(timer);
  });

  it('[GW-LIMIT] an answer may last longer than a request may take', async () => {
    await start({ patience: PATIENCE });
    const socket = await raw('GET /hang HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'data');
    await new Promise<void>((resolve) => systemClock.setTimer(700, resolve));
    expect(socket.closed).toBe(false);
    socket.destroy();
  });

  it('[GW-LIMIT] by default the head has 15 s and the whole request 60 s', async () => {
    const { server } = await start();
    expect([server.headersTimeout, server.requestTimeout]).toEqual([15_000, 60_000]);
  });

  it('[GW-LIMIT] sockets beyond the bound are closed at once, and there is room again when one goes', async () => {
    await start({ maxSockets: 2 });
    const held = [await raw(''), await raw('')];
    const third = await raw('');
    expect(await readAll(third)).toBe('');
    held[0]?.destroy();
    const request = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
    let text = '';
    while (text === '') text = await readAll(await raw(request));
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    held[1]?.destroy();
  });

  it('[GW-DRAIN] a close lets nobody in, ends idle sockets at once and those that are answering soon', async () => {
    const listening = await start();
    const idle = await raw('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(idle, 'data');
    const hanging = await raw('GET /hang HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(hanging, 'data');
    const before = systemClock.monoMs();
    const closed = listening.close();
    await readAll(idle);
    await closed;
    await readAll(hanging);
    expect(systemClock.monoMs() - before).toBeLessThan(5000);
    await expect(raw('')).rejects.toThrow();
    await listening.close();
  });
});
