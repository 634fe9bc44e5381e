import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { startTcpProxy } from './tcp-proxy.ts';
import { waitUntil } from './wait-until.ts';

const frame = (text: string): Buffer => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(Buffer.byteLength(text));
  return Buffer.concat([length, Buffer.from(text)]);
};

describe('a TCP proxy that fails', () => {
  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  const setUp = async () => {
    const seen: Buffer[] = [];
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (chunk: Buffer) => {
        seen.push(chunk);
        socket.write(chunk);
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    ends.push(() => server.close());
    const proxy = await startTcpProxy({ target: { host: '127.0.0.1', port: (server.address() as AddressInfo).port } });
    ends.push(() => proxy[Symbol.asyncDispose]());
    const open = async (): Promise<{ socket: Socket; got: () => string }> => {
      const socket = connect(proxy.port, '127.0.0.1');
      socket.on('error', () => undefined);
      ends.push(() => socket.destroy());
      const chunks: Buffer[] = [];
      socket.on('data', (chunk: Buffer) => chunks.push(chunk));
      await once(socket, 'connect');
      return { socket, got: () => Buffer.concat(chunks).toString() };
    };
    return { proxy, open, seen: () => Buffer.concat(seen).toString() };
  };

  it('passes both ways on, and stops after the messages that it was told, however they are cut into chunks', async () => {
    const { proxy, open, seen } = await setUp();
    const { socket, got } = await open();
    proxy.stopAfter(3);
    for (const byte of frame('one')) socket.write(Buffer.from([byte]));
    await waitUntil('the first answer', () => got() === frame('one').toString());
    socket.write(Buffer.concat([frame('two'), frame('three')]));
    await waitUntil('three messages', () => proxy.frames() === 3);
    await waitUntil('two requests', () => seen() === Buffer.concat([frame('one'), frame('two')]).toString());
    expect(got()).toBe(frame('one').toString());
    expect(socket.destroyed).toBe(false);
  });

  it('swallows answers, refuses, and resets', async () => {
    const { proxy, open, seen } = await setUp();
    const { socket, got } = await open();
    proxy.setMode('swallow-answers');
    socket.write('x');
    await waitUntil('the request', () => seen() === 'x');
    expect(got()).toBe('');
    proxy.setMode('refuse');
    const refused = connect(proxy.port, '127.0.0.1');
    refused.on('error', () => undefined);
    await waitUntil('the refusal', () => refused.destroyed);
    expect(socket.destroyed).toBe(false);
    proxy.reset();
    await waitUntil('the reset', () => socket.destroyed);
    expect(proxy.connections()).toBe(0);
  });
});
