/** A broker that accepts connections and never says a word. */
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from './testing/run-cli.ts';

let server: Server;
let address: string;
const sockets = new Set<Socket>();
beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

const SESSION = `k7q2fabcde.0.0.1.${'A'.repeat(22)}.${'A'.repeat(22)}`;

describe('a broker that never answers', () => {
  it.concurrent.each([
    'doctor',
    'topics show',
    'topics diff',
    'topics apply',
    'owners',
    'tail --once',
    'epoch show',
    'epoch rotate --reason drill --yes',
    `inspect ${SESSION}`,
  ])(
    '[WAIT-OPERATOR] %s ends with 1 and names the address',
    async (command) => {
      const startedMs = performance.now();
      const { code, stdout, stderr } = await runCli(`${command} --log kafka://${address}`);
      expect([code, stdout, stderr]).toEqual([1, expect.any(String), expect.any(String)]);
      expect(stdout + stderr).toContain(`${address} did not answer`);
      expect(performance.now() - startedMs).toBeLessThan(30_000);
    },
    40_000,
  );
});
