/** Servers that are not there, as Node's own fetch tells of them. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { waitUntil, within } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { INITIALIZE, makeRig, SHORT } from './client-rig.ts';
import type { ClientRig } from './client-rig.ts';

/** A port on which nobody listens any more. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

const realFetch = (url: string | URL, init?: RequestInit): Promise<Response> => fetch(url, init);

async function initializeAt(url: string): Promise<ClientRig> {
  const rig = makeRig({ ...SHORT, connectTimeoutMs: 5000, fetch: realFetch }, undefined, undefined, url);
  await rig.transport.start();
  await rig.transport.send(INITIALIZE);
  return rig;
}

describe('a server that is not there', { timeout: 60_000 }, () => {
  it('[CLIENT-UNSENT] fails a call with what the system says, and says that it has not run', async () => {
    const port = await closedPort();
    const rig = await initializeAt(`http://127.0.0.1:${port}/mcp`);
    const { error } = await within('initialize', rig.answer('init'), 30_000);
    expect(error?.message).toBe(`The server at http://127.0.0.1:${port} cannot be reached: ECONNREFUSED`);
    expect(error?.data).toEqual({
      type: 'TransportError',
      code: 'UNREACHABLE',
      cause: 'ECONNREFUSED',
      mayHaveRun: false,
    });
  });

  it('[CLIENT-UNSENT] and so does a name that nobody knows', async () => {
    const rig = await initializeAt('http://nobody.invalid/mcp');
    const { error } = await within('initialize', rig.answer('init'), 30_000);
    expect(error?.data).toMatchObject({ code: 'UNREACHABLE', mayHaveRun: false });
    expect(error?.data.cause).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/);
  });

  it('[CLIENT-TELLS] is told with the attempt, the time until the next one, and its origin alone', async () => {
    const port = await closedPort();
    const rig = await initializeAt(`http://127.0.0.1:${port}/path-secret?key=query-secret`);
    await waitUntil('two attempts', () => rig.errors.length >= 2);
    const [first, second] = rig.errors;
    expect([first?.retry?.attempt, second?.retry?.attempt]).toEqual([1, 2]);
    expect(first?.retry?.inMs).toBeGreaterThanOrEqual(0);
    expect(first?.message).toContain(`http://127.0.0.1:${port} `);
    expect(rig.errors.map(({ message }) => message).join()).not.toContain('secret');
  });

  it('[CLIENT-UNSENT] one that takes the connection and drops it may have run it', async () => {
    const server = createServer((socket) => socket.on('data', () => socket.destroy())).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const rig = await initializeAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
      const { error } = await within('initialize', rig.answer('init'), 30_000);
      expect(error?.data).toMatchObject({ code: 'UNREACHABLE', mayHaveRun: true });
    } finally {
      server.close();
    }
  });
});
