import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { AccessChange } from '@throughline/gateway';
import { systemClock } from '@throughline/log';
import { silentLogger } from '@throughline/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { followAccess } from './follow-access.ts';
import { loadLine } from './testing/load-line.ts';

const HASHES = ['aa', 'bb'].map((byte) => byte.repeat(32));
const SECRETS = [7, 8].map((byte) => Buffer.alloc(32, byte).toString('base64url'));
const PEMS = [1, 2].map(() =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' }).toString(),
);

let cwd: string;
let stop: () => void;
beforeEach(() => {
  cwd = mkdtempSync(path.join(tmpdir(), 'throughline-access-'));
});
afterEach(() => {
  stop();
  rmSync(cwd, { recursive: true });
});

interface Followed {
  readonly changes: AccessChange[];
  readonly lines: string[];
  look(): Promise<void>;
}

function follow(line: string): Followed {
  const changes: AccessChange[] = [];
  const lines: string[] = [];
  const tell =
    (level: string) =>
    (event: string, fields?: object): void =>
      void lines.push(`${level} ${event} ${JSON.stringify(fields)}`);
  const logger = { ...silentLogger, info: tell('info'), warn: tell('warn') };
  const { accessFiles } = loadLine(line, {}, cwd);
  const followed = followAccess(accessFiles, (change) => changes.push(change), { clock: systemClock, logger });
  stop = () => {
    for (const following of followed) following.stop();
  };
  return {
    changes,
    lines,
    async look() {
      await Promise.all(followed.map((following) => following.look()));
    },
  };
}

const write = (name: string, text: string): void => {
  writeFileSync(path.join(cwd, name), text, { mode: 0o600 });
};

describe('files of tokens, keys and secrets', () => {
  it('[CLI-REREAD] that change are used, each as at the start, and said once', async () => {
    write('tokens', `alice:${HASHES[0]}\n`);
    write('keys.pem', PEMS[0] ?? '');
    write('secrets', SECRETS[0] ?? '');
    const { changes, lines, look } = follow(
      'serve --auth-tokens-file tokens --auth-issuer https://id.example.com --auth-keys-file keys.pem --secrets-file secrets',
    );
    await look();
    expect([changes, lines]).toEqual([[], []]);

    write('tokens', `bob:${HASHES[1]}\n`);
    write('secrets', `${SECRETS[1]}\n${SECRETS[0]}\n`);
    write('next.pem', PEMS[1] ?? '');
    renameSync(path.join(cwd, 'next.pem'), path.join(cwd, 'keys.pem'));
    await look();
    await look();
    expect(changes.map(({ kind }) => kind).sort()).toEqual(['keys', 'secrets', 'tokens']);
    expect(changes).toContainEqual({ kind: 'tokens', tokens: [{ principal: 'bob', sha256: HASHES[1] }] });
    expect(changes).toContainEqual({
      kind: 'secrets',
      secrets: [new Uint8Array(32).fill(8), new Uint8Array(32).fill(7)],
    });
    expect(changes).toContainEqual({
      kind: 'keys',
      issuer: 'https://id.example.com',
      keys: [expect.objectContaining({ kty: 'EC', crv: 'P-256' })],
    });
    expect(lines.sort()).toEqual([
      expect.stringMatching(/^info access\.renewed .*--auth-keys-file.*keys\.pem/),
      expect.stringMatching(/^info access\.renewed .*--auth-tokens-file.*tokens/),
      expect.stringMatching(/^info access\.renewed .*--secrets-file.*secrets/),
    ]);
  });

  it.each([
    ['nothing', ''],
    ['a line that is no token', `bob:${HASHES[1]}\ncarol:tok-carol\n`],
    ['more than 4 MiB', '#'.repeat(4 * 1024 * 1024 + 1)],
  ])('[CLI-REREAD] that hold %s change nothing, and a warning without their words says so once', async (_, text) => {
    write('tokens', `alice:${HASHES[0]}\n`);
    const { changes, lines, look } = follow('serve --auth-tokens-file tokens');
    write('tokens', text);
    await look();
    await look();
    expect(changes).toEqual([]);
    expect(lines).toEqual([expect.stringMatching(/^warn access\.refused .*--auth-tokens-file.*goes on/)]);
    expect(lines.join()).not.toContain('tok-carol');
    write('tokens', `bob:${HASHES[1]}\n`);
    await look();
    expect(changes).toHaveLength(1);
  });

  it.each([
    ['a secret that is short', 'secrets', '--secrets-file', 'short-secret'],
    ['a private key', 'keys.pem', '--auth-keys-file', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n'],
    ['a key of another kind', 'keys.pem', '--auth-keys-file', '{"keys":[{"kty":"oct","k":"c2hvcnQtc2VjcmV0"}]}'],
  ])('[CLI-REREAD] with %s change nothing, and keep no other from being used', async (_, name, option, text) => {
    write('tokens', `alice:${HASHES[0]}\n`);
    write('keys.pem', PEMS[0] ?? '');
    write('secrets', SECRETS[0] ?? '');
    const { changes, lines, look } = follow(
      'serve --auth-tokens-file tokens --auth-issuer https://id.example.com --auth-keys-file keys.pem --secrets-file secrets',
    );
    write(name, text);
    write('tokens', `bob:${HASHES[1]}\n`);
    await look();
    expect(changes.map(({ kind }) => kind)).toEqual(['tokens']);
    expect(lines).toContainEqual(expect.stringMatching(new RegExp(`^warn access\\.refused .*${option}`)));
    expect(lines.join()).not.toMatch(/short-secret|c2hvcnQt|AAAA/);
  });

  it('[CLI-REREAD] that are gone change nothing', async () => {
    write('tokens', `alice:${HASHES[0]}\n`);
    const { changes, lines, look } = follow('serve --auth-tokens-file tokens');
    rmSync(path.join(cwd, 'tokens'));
    await look();
    expect(changes).toEqual([]);
    expect(lines).toEqual([expect.stringContaining('there is no such file')]);
  });

  it('[CLI-REREAD] of issuers in the configuration file are read again too', async () => {
    write('ci.pem', PEMS[0] ?? '');
    write(
      'throughline.yaml',
      'publicUrl: https://mcp.example.com\nauth: { issuers: [{ issuer: "https://ci.example.com", keysFile: ci.pem }] }\n',
    );
    const { changes, look } = follow('serve');
    write('ci.pem', PEMS[1] ?? '');
    await look();
    expect(changes).toMatchObject([{ kind: 'keys', issuer: 'https://ci.example.com' }]);
  });
});
