/** The process itself: what it does when nobody takes what it writes, and when it is told to end while a broker is silent. */
import { spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '@throughline/testkit';
import { afterEach, describe, expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url));
/** Every write to it fails as on a disk without space. */
const FULL = '/dev/full';
const DEADLINE_MS = 60_000;

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

function start(args: readonly string[], stdio: StdioOptions): ChildProcess {
  const child = spawn(process.execPath, ['--conditions=@throughline/source', MAIN, ...args], { stdio });
  children.push(child);
  return child;
}

async function exitCode(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null) await once(child, 'exit', { signal: AbortSignal.timeout(DEADLINE_MS) });
  return child.exitCode;
}

/** Resolves with the status of an answer, whatever it is. */
async function answers(port: number): Promise<number> {
  const until = performance.now() + DEADLINE_MS;
  for (;;) {
    try {
      return (await fetch(`http://127.0.0.1:${port}/mcp`)).status;
    } catch (error) {
      if (performance.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

describe('streams that cannot be written', () => {
  it.each(['stdout', 'stderr'])(
    '[CLI-OUTPUT] a role with a full %s serves on, and ends in order',
    { timeout: 120_000 },
    async (full) => {
      const port = await findFreePort();
      const handle = openSync(FULL, 'w');
      const stdio: StdioOptions = full === 'stdout' ? ['ignore', handle, 'ignore'] : ['ignore', 'ignore', handle];
      const child = start(
        ['serve', '--log', 'memory:', '--listen', `127.0.0.1:${port}`, '--admin', '127.0.0.1:0', '--drain', '100ms'],
        stdio,
      );
      closeSync(handle);
      expect(await answers(port)).toBe(405);
      expect(await answers(port)).toBe(405);
      child.kill('SIGTERM');
      expect(await exitCode(child)).toBe(0);
    },
  );

  it.each([[['secret', 'new']], [['config', 'print']], [['help']]])(
    '[CLI-OUTPUT] %j says that its output is lost, and fails',
    { timeout: 120_000 },
    async (args) => {
      const handle = openSync(FULL, 'w');
      const child = start(args, ['ignore', handle, 'pipe']);
      closeSync(handle);
      const [said, code] = await Promise.all([child.stderr === null ? '' : text(child.stderr), exitCode(child)]);
      expect(said).toMatch(/^throughline: the output cannot be written: ENOSPC/);
      expect(code).toBe(1);
    },
  );
});

describe('Ctrl-C', () => {
  it(
    '[CLI-OPERATE] ends a command that waits for a silent broker at once, with exit code 130',
    { timeout: 120_000 },
    async () => {
      const sockets: Socket[] = [];
      const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
      await once(silent, 'listening');
      const { port } = silent.address() as AddressInfo;
      try {
        const child = start(['doctor', '--log', `kafka://127.0.0.1:${port}`], ['ignore', 'ignore', 'ignore']);
        await once(silent, 'connection', { signal: AbortSignal.timeout(DEADLINE_MS) });
        const askedMs = performance.now();
        child.kill('SIGINT');
        expect(await exitCode(child)).toBe(130);
        // Far less than any wait for a broker, and far more than the grace.
        expect(performance.now() - askedMs).toBeLessThan(2500);
      } finally {
        for (const socket of sockets) socket.destroy();
        silent.close();
      }
    },
  );
});
