import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openCredentials } from './credentials.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'throughline-token-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe('credentials', () => {
  it('[CONNECT-AUTH] a token that is refused is read again, and used if it is another one', async () => {
    const tokenFile = path.join(folder, 'token');
    writeFileSync(tokenFile, 'first-secret\n');
    const told: string[] = [];
    const credentials = openCredentials({ headers: { 'X-A': 'b-secret' }, tokenFile, tell: (text) => told.push(text) });
    expect(credentials.headers()).toEqual({ 'X-A': 'b-secret', Authorization: 'Bearer first-secret' });
    const refused = new Response(null, { status: 401 });
    expect(await credentials.onUnauthorized(refused, new Headers())).toBe(false);
    writeFileSync(tokenFile, 'second-secret');
    expect(await credentials.onUnauthorized(refused, new Headers())).toBe(true);
    expect(credentials.headers()['Authorization']).toBe('Bearer second-secret');
    rmSync(tokenFile);
    expect(await credentials.onUnauthorized(refused, new Headers())).toBe(false);
    expect(credentials.headers()['Authorization']).toBe('Bearer second-secret');
    expect(told).toHaveLength(3);
    expect(told[0]).toContain(`(401); write a new token to ${tokenFile}`);
    expect(told.join('')).not.toMatch(/first|second|b-secret/);
  });

  it('[CONNECT-AUTH] a file that holds no token is refused without saying what it holds', () => {
    const tokenFile = path.join(folder, 'token');
    for (const text of ['', '\n', 'two words', 'a\nb', 'naïve'] as const) {
      writeFileSync(tokenFile, text);
      expect(() => openCredentials({ headers: {}, tokenFile, tell: () => undefined })).toThrow(
        `--token-file ${tokenFile}: it must hold one token and nothing else`,
      );
    }
    rmSync(tokenFile);
    expect(() => openCredentials({ headers: {}, tokenFile, tell: () => undefined })).toThrow('there is no such file');
  });
});
