import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findStaleInstall } from './install.mjs';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'throughline-install-'));
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

type Entry = { version?: string; integrity?: string; optional?: boolean; link?: boolean };

function write(file: string, packages: Record<string, Entry>): void {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  writeFileSync(path.join(root, file), JSON.stringify({ packages }));
}

function writeNode(): void {
  mkdirSync(path.join(root, 'node_modules/node/bin'), { recursive: true });
  writeFileSync(path.join(root, 'node_modules/node/bin/node'), '');
}

const WANTED: Record<string, Entry> = {
  '': {},
  'libs/log': { version: '0.1.0' },
  'node_modules/@throughline/log': { link: true },
  'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
  'node_modules/a/node_modules/b': { version: '2.0.0', integrity: 'sha512-b' },
  'node_modules/for-another-system': { version: '3.0.0', integrity: 'sha512-c', optional: true },
};
const { 'node_modules/for-another-system': _other, ...INSTALLED } = WANTED;

describe('findStaleInstall', () => {
  it('[CLI-INSTALL] what package-lock.json asks for, without binaries of other systems, is in place', () => {
    write('package-lock.json', WANTED);
    write('node_modules/.package-lock.json', INSTALLED);
    writeNode();
    expect(findStaleInstall(root)).toBeNull();
  });

  it('[CLI-INSTALL] nothing installed, an interrupted install and a missing Node are not in place', () => {
    expect(findStaleInstall(root)).toMatch(/package-lock\.json cannot be read/);
    write('package-lock.json', WANTED);
    expect(findStaleInstall(root)).toMatch(/not installed yet/);
    writeNode();
    expect(findStaleInstall(root)).toMatch(/not installed yet/);
    rmSync(path.join(root, 'node_modules'), { recursive: true });
    write('node_modules/.package-lock.json', INSTALLED);
    expect(findStaleInstall(root)).toMatch(/Node 24 binary is missing/);
  });

  it('[CLI-INSTALL] a package that is missing, of another version or of other content is not in place', () => {
    writeNode();
    write('node_modules/.package-lock.json', INSTALLED);
    const a = 'node_modules/a';
    write('package-lock.json', { ...WANTED, 'node_modules/new': { version: '1.0.0' } });
    expect(findStaleInstall(root)).toMatch(/node_modules\/new is missing/);
    write('package-lock.json', { ...WANTED, [a]: { version: '1.0.1', integrity: 'sha512-a' } });
    expect(findStaleInstall(root)).toMatch(/node_modules\/a is not the version/);
    write('package-lock.json', { ...WANTED, [a]: { version: '1.0.0', integrity: 'sha512-x' } });
    expect(findStaleInstall(root)).toMatch(/node_modules\/a is not the package/);
  });
});
