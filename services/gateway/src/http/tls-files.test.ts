import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { systemClock } from '@throughline/log';
import { silentLogger } from '@throughline/telemetry';
import { makeSelfSigned } from '@throughline/testkit';
import type { SelfSigned } from '@throughline/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../testing/http-rig.ts';
import { listen } from './listen.ts';
import type { Listening } from './listen.ts';

let folder: string;
let open: Listening | null = null;
/** Whatever is waited for that long has passed. */
let elapse: () => void;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'throughline-gateway-tls-'));
});
afterEach(async () => {
  await open?.close();
  open = null;
  rmSync(folder, { recursive: true });
});

async function start({ certFile, keyFile }: Omit<SelfSigned, 'ca'>): Promise<Listening> {
  const due = new Set<() => void>();
  elapse = () => {
    for (const run of [...due]) {
      due.delete(run);
      run();
    }
  };
  open = await listen(
    {
      host: '127.0.0.1',
      port: 0,
      flag: '--listen',
      clock: {
        ...systemClock,
        setTimer(ms, run) {
          // Only the look at the files is waited for here.
          if (ms !== 10_000) return systemClock.setTimer(ms, run);
          due.add(run);
          return () => due.delete(run);
        },
      },
      maxSockets: 10,
      tls: { files: { certFile, keyFile }, logger: silentLogger },
      onError: () => undefined,
    },
    (_, response) => response.end('served'),
  );
  return open;
}

/** What a client that trusts `ca` alone gets. */
function ask(url: string, ca: string): Promise<string> {
  return new Promise((resolve) => {
    get(url, { ca, agent: false }, (response) => {
      response.setEncoding('utf8').on('data', resolve);
    }).on('error', () => {
      resolve('refused');
    });
  });
}

describe('TLS', () => {
  it('[GW-TLS] the endpoint speaks it with the certificate and key of the files, and nothing else', async () => {
    const own = makeSelfSigned(folder, 'own');
    const { url } = await start(own);
    expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect(await ask(url, own.ca)).toBe('served');
    expect(await ask(url, makeSelfSigned(folder, 'other').ca)).toBe('refused');
    await expect(fetch(url.replace('https:', 'http:'))).rejects.toThrow();
  }, 60_000);

  it('[GW-TLS] files that change are used for new connections; a half of them, or rubbish, changes nothing', async () => {
    const first = makeSelfSigned(folder, 'first');
    const second = makeSelfSigned(folder, 'second');
    const files = { certFile: path.join(folder, 'used.pem'), keyFile: path.join(folder, 'used.key') };
    copyFileSync(first.certFile, files.certFile);
    copyFileSync(first.keyFile, files.keyFile);
    const { url } = await start(files);

    writeFileSync(files.certFile, 'rubbish');
    elapse();
    expect(await ask(url, first.ca)).toBe('served');
    copyFileSync(second.certFile, files.certFile);
    elapse();
    expect(await ask(url, first.ca)).toBe('served');

    copyFileSync(second.keyFile, files.keyFile);
    await until(async () => {
      elapse();
      return (await ask(url, second.ca)) === 'served';
    }, 30_000);
    expect(await ask(url, first.ca)).toBe('refused');
  }, 60_000);

  it('[GW-TLS] files that cannot be used are an error that names them, and nothing listens', async () => {
    const { certFile } = makeSelfSigned(folder, 'one');
    const { keyFile } = makeSelfSigned(folder, 'two');
    for (const files of [
      { certFile, keyFile },
      { certFile, keyFile: path.join(folder, 'nowhere') },
    ])
      await expect(start(files)).rejects.toMatchObject({
        code: 'TLS_REFUSED',
        message: expect.stringContaining(files.keyFile) as string,
      });
  }, 60_000);
});
