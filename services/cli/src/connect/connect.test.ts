/** `throughline connect` where the state folder is not what it should be: the client is served all the same. */
import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { FileCheckpointStore } from '@throughline/client/node';
import { startFaultyServer } from '@throughline/client/testing';
import type { FaultyServer } from '@throughline/client/testing';
import { makeScratchFolder } from '@throughline/testkit/processes';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { connectInProcess } from './testing/connect-in-process.ts';

vi.setConfig({ testTimeout: 60_000 });

let server: FaultyServer;
let folder: string;
let state: string;
let placeFile: string;
beforeEach(async () => {
  server = await startFaultyServer();
  const scratch = makeScratchFolder();
  folder = scratch.path;
  state = path.join(folder, 'state');
  placeFile = new FileCheckpointStore(state).fileOf(`${server.url}\nhere`);
  onTestFinished(async () => {
    await server.stop();
    scratch[Symbol.dispose]();
  });
});

const INITIALIZE = {
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
};

/** Serves one call; what it told, and its exit code. */
async function serveOnce(meanwhile: () => void = () => undefined): Promise<{ stderr: string; code: number }> {
  const bridge = connectInProcess(server.url, ['--state-folder', state, '--place', 'here'], folder);
  bridge.type(INITIALIZE);
  expect((await bridge.answer(0)).result).toBeDefined();
  bridge.type({ method: 'notifications/initialized' });
  meanwhile();
  bridge.type({ id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text: 'served' } } });
  expect((await bridge.answer(1)).result).toMatchObject({ content: [{ text: 'served' }] });
  const code = await bridge.close();
  return { stderr: bridge.stderr(), code };
}

describe('the state folder of a client', () => {
  it('[CONNECT-STATE] is made, and left without a place when the client has said goodbye', async () => {
    expect(await serveOnce()).toEqual({ stderr: '', code: 0 });
    expect(readdirSync(state)).toEqual([]);
  });

  it('[CONNECT-STATE] that cannot be made is told with the option that names another, and the client is served', async () => {
    writeFileSync(state, '');
    const { stderr, code } = await serveOnce();
    expect(stderr).toContain('the place cannot be kept in');
    expect(stderr).toContain('name another folder by --state-folder');
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(code).toBe(0);
  });

  it('[CONNECT-STATE] that goes away, or cannot be written any more, is told, and ends nothing', async () => {
    const { stderr, code } = await serveOnce(() => {
      rmSync(state, { recursive: true });
      writeFileSync(state, '');
    });
    expect(stderr).toContain('The checkpoint could not be kept');
    expect(stderr).not.toContain('unexpected');
    expect(code).toBe(0);
  });

  it.each(['', '{', 'null', '[]', '{"v":1}', '{"v":2}', '\u0000'])(
    '[CONNECT-STATE] with a place that holds %j is served by a new session, which is told',
    async (text) => {
      mkdirSync(state);
      writeFileSync(placeFile, text);
      const { stderr, code } = await serveOnce();
      expect(stderr).toContain('The kept checkpoint cannot be read; a new session is begun');
      expect(code).toBe(0);
      expect(readdirSync(state)).toEqual([]);
    },
  );

  it('[CONNECT-STATE] with a place that is a folder is served by a new session, which is told', async () => {
    mkdirSync(placeFile, { recursive: true });
    const { stderr, code } = await serveOnce();
    expect(stderr).toContain('The checkpoint could not be read; a new session is begun');
    expect(code).toBe(0);
  });

  it('[CONNECT-SWEEP] is swept when a client is started', async () => {
    mkdirSync(state);
    const old = new FileCheckpointStore(state).fileOf('of nobody for long');
    writeFileSync(old, '{}');
    utimesSync(old, 0, 0);
    await serveOnce(() => undefined);
    await vi.waitUntil(() => readdirSync(state).length === 0, { timeout: 10_000 });
  });
});

describe('a server that is not there', () => {
  it('[CONNECT-START] [CONNECT-TELLS] is named to the client and on stderr, with the cause, the attempt and the fix', async () => {
    const { url } = server;
    await server.stop();
    const bridge = connectInProcess(url, ['--state-folder', state, '--start-within', '2s'], folder);
    bridge.type(INITIALIZE);
    const { error } = await bridge.answer(0);
    const away = `The server at ${new URL(url).origin} cannot be reached: ECONNREFUSED`;
    expect(error?.message).toContain(`the server did not answer initialize within 2 s: ${away}: check the URL`);
    expect(error?.data).toMatchObject({ code: 'UNREACHABLE', cause: 'ECONNREFUSED', mayHaveRun: false });
    expect(await bridge.close()).toBe(3);
    const [, after = ''] = bridge.stderr().split(away);
    expect(after).toMatch(/^; attempt 1, the next in \d\.\d s\n/);
  });
});
