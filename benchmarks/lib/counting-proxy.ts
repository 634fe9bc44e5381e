/** Stands before a broker and counts the requests of each kind and the bytes of answers. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export interface CountingProxy extends AsyncDisposable {
  readonly port: number;
  /** Produce requests so far, and bytes that brokers answered with. */
  counts(): { readonly produces: number; readonly answeredBytes: number };
}

const PRODUCE = 0;

/** `target` is asked for when the first client comes. */
export async function startCountingProxy(target: () => number): Promise<CountingProxy> {
  let produces = 0;
  let answeredBytes = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const broker = connect(target(), '127.0.0.1');
    const countFrames = frameCounter((apiKey) => {
      if (apiKey === PRODUCE) produces += 1;
    });
    client.on('data', countFrames);
    broker.on('data', (chunk) => {
      answeredBytes += chunk.length;
    });
    client.pipe(broker);
    broker.pipe(client);
    for (const socket of [client, broker]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        broker.destroy();
        sockets.delete(socket);
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    counts: () => ({ produces, answeredBytes }),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A request is four bytes of length, and then begins with two bytes that say its kind. */
function frameCounter(onRequest: (apiKey: number) => void): (chunk: Buffer) => void {
  let head = Buffer.alloc(0);
  let skip = 0;
  return (chunk) => {
    let rest = chunk;
    while (rest.length > 0) {
      if (skip > 0) {
        const taken = Math.min(skip, rest.length);
        skip -= taken;
        rest = rest.subarray(taken);
        continue;
      }
      const taken = Math.min(6 - head.length, rest.length);
      head = Buffer.concat([head, rest.subarray(0, taken)]);
      rest = rest.subarray(taken);
      if (head.length < 6) return;
      onRequest(head.readInt16BE(4));
      skip = head.readInt32BE(0) - 2;
      head = Buffer.alloc(0);
    }
  };
}
