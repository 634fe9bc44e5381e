import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findStaleInstall } from './install.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(path.join(tmpdir(), 'throughline-run-'));
});
afterEach(() => {
  rmSync(cwd, { recursive: true, force: true });
});

function launch(...args: string[]) {
  const child = spawn(process.execPath, [path.join(ROOT, 'infra/run.mjs'), ...args], { cwd });
  let output = '';
  child.stdout.on('data', (data: Buffer) => (output += data.toString()));
  child.stderr.on('data', (data: Buffer) => (output += data.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  return { child, ended, output: () => output };
}

// With a stale node_modules the launcher would rightly begin to install.
describe.runIf(findStaleInstall(ROOT) === null)('infra/run.mjs', { timeout: 60_000 }, () => {
  it('[CLI-INSTALL] arguments go in and the exit code comes out', async () => {
    const wrong = launch('start', '--lisen', 'x');
    expect(await wrong.ended).toBe(2);
    expect(wrong.output()).toContain('Did you mean --listen?');
    const help = launch('start', '--help');
    expect(await help.ended).toBe(0);
    expect(help.output()).toContain('Usage: throughline');
  });

  it('[CLI-INSTALL] a command that does not exist is refused with those that do', async () => {
    const unknown = launch('strat');
    expect(await unknown.ended).toBe(2);
    expect(unknown.output()).toContain('Known: start, test, deep, check, simulate, chaos, interop, demo:failover');
  });

  it('[CLI-INSTALL] options for a command that has none are refused', async () => {
    const wrong = launch('demo:human', '--fast');
    expect(await wrong.ended).toBe(2);
    expect(wrong.output()).toContain('demo:human takes no options: --fast');
  });

  it.each(['test', 'deep', 'bench', 'kafka', 'simulate', 'chaos', 'interop', 'check', 'demo:human', 'containers'])(
    '[CLI-OPTIONS] %s says for --help what it does, and does nothing',
    async (command) => {
      const help = launch(command, '--help');
      expect(await help.ended).toBe(0);
      expect(help.output()).toMatch(/^Usage: npm /);
    },
  );

  it('[CLI-INSTALL] SIGTERM reaches the program, which drains and ends with 0', async () => {
    const serve = launch('start', '--log', 'memory:', '--listen', '127.0.0.1:0', '--admin', 'off');
    await expect.poll(() => serve.output(), { timeout: 30_000 }).toMatch(/Throughline is ready/);
    serve.child.kill('SIGTERM');
    expect(await serve.ended).toBe(0);
    expect(serve.output()).toContain('stop.done');
  });
});
