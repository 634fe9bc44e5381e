import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE } from './bundle.ts';

const DEADLINE_MS = 120_000;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'throughline-pack-'));
  npm(PACKAGE, 'pack', '--silent', '--pack-destination', folder);
  const [tarball] = readdirSync(folder);
  writeFileSync(path.join(folder, 'package.json'), '{"private":true}');
  npm(folder, 'install', '--no-audit', '--no-fund', '--loglevel=error', `./${tarball}`);
}, DEADLINE_MS);
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function npm(cwd: string, ...args: string[]): void {
  execFileSync('npm', args, { cwd, stdio: ['ignore', 'ignore', 'inherit'], timeout: DEADLINE_MS });
}

describe('npm pack', () => {
  it('[CLI-PACK] an installed package knows its version', () => {
    const version = execFileSync(path.join(folder, 'node_modules/.bin/throughline'), ['--version'], {
      encoding: 'utf8',
    });
    expect(version).toBe('0.1.0\n');
  });

  it('[CLI-PACK] the packed package, installed in an empty folder, serves', { timeout: DEADLINE_MS }, async () => {
    const args = ['serve', '--listen', '127.0.0.1:0', '--admin', 'off'];
    const child = spawn(path.join(folder, 'node_modules/.bin/throughline'), args, { cwd: folder });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
    child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    try {
      await expect.poll(() => stdout + stderr, { timeout: 30_000 }).toMatch(/Throughline is ready: /);
      const response = await fetch(/http:\/\/\S+/.exec(stdout)?.[0] ?? '', {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'initialize',
          params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
        }),
        signal: AbortSignal.timeout(30_000),
      });
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('"serverInfo"');
    } finally {
      child.kill('SIGTERM');
    }
    expect(await ended).toBe(0);
  });
});
