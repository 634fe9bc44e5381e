import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DEADLINE_MS = 10 * 60_000;

/** What a clone would hold: tracked files, and new ones that are not ignored. */
function copyClone(folder: string): void {
  const list = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: ROOT, encoding: 'utf8' });
  for (const file of list.split('\0').filter((name) => name !== '' && existsSync(path.join(ROOT, name)))) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    cpSync(path.join(ROOT, file), path.join(folder, file));
  }
}

describe('a fresh clone', () => {
  it.runIf(process.env['DEEP'] === '1' && existsSync(path.join(ROOT, '.git')))(
    '[CLI-INSTALL] npm start alone installs with an empty npm cache, says so, and runs; the second time it does not install',
    { timeout: DEADLINE_MS },
    () => {
      const folder = mkdtempSync(path.join(tmpdir(), 'throughline-clone-'));
      const clone = path.join(folder, 'clone');
      // Only what the system has: not this project's own Node.
      const system = (process.env['PATH'] ?? '')
        .split(path.delimiter)
        .filter((entry) => !entry.includes('node_modules'));
      const npmStart = (): string =>
        execFileSync('sh', ['-c', 'npm start -- --help 2>&1'], {
          cwd: clone,
          encoding: 'utf8',
          env: { HOME: folder, PATH: system.join(path.delimiter), npm_config_cache: path.join(folder, 'cache') },
          timeout: DEADLINE_MS,
        });
      try {
        mkdirSync(clone);
        copyClone(clone);
        const first = npmStart();
        expect(first).toContain('Throughline: installing dependencies');
        expect(first).toContain('Usage: throughline');
        expect(first).not.toMatch(/npm (?:warn|error)/i);
        const second = npmStart();
        expect(second).not.toContain('installing');
        expect(second).toContain('Usage: throughline');
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
