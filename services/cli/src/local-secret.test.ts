import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readLocalSecret } from './local-secret.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'local-secret-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe('readLocalSecret', () => {
  it('[CLI-KAFKA-SECRET] makes one of 32 bytes that only this user can read, and gives the same ever after', () => {
    const file = path.join(folder, 'deep', 'secrets');
    const [first] = readLocalSecret(file);
    expect(first).toHaveLength(32);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readLocalSecret(file)).toEqual([first]);
  });

  it('[CLI-KAFKA-SECRET] a damaged file is refused and left as it is', () => {
    const file = path.join(folder, 'secrets');
    writeFileSync(file, 'short\n');
    expect(() => readLocalSecret(file)).toThrow(/secret 1 is not 32 bytes/);
    expect(readFileSync(file, 'utf8')).toBe('short\n');
  });
});
