import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import type { ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url));
const ANY_PORT = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
const DEADLINE_MS = 30_000;

let cwd: string;
const children = new Set<ChildProcess>();
beforeEach(() => {
  cwd = mkdtempSync(path.join(tmpdir(), 'throughline-main-'));
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
  rmSync(cwd, { recursive: true, force: true });
});

interface Program {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

function start(...args: string[]): Program {
  const environment = Object.entries(process.env).filter(([name]) => !name.startsWith('THROUGHLINE_'));
  const child = spawn(process.execPath, ['--conditions=@throughline/source', MAIN, ...args], {
    cwd,
    env: Object.fromEntries(environment),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  children.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.on('close', (code, signal) => {
      children.delete(child);
      resolve({ code, signal });
    });
  });
  return { child, stdout: () => stdout, stderr: () => stderr, ended };
}

/** Runs to its end. */
async function run(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const program = start(...args);
  program.child.stdin?.end();
  const { code } = await program.ended;
  return { code, stdout: program.stdout(), stderr: program.stderr() };
}

async function untilReady(program: Program): Promise<string> {
  const isReady = expect
    .poll(() => program.stdout(), { timeout: DEADLINE_MS, interval: 20 })
    .toMatch(/ is ready: .*\n/);
  const died = program.ended.then(({ code }) => {
    throw new Error(`ended with code ${code} before it was ready: ${program.stderr()}`);
  });
  await Promise.race([isReady, died]);
  return /http:\/\/[^\s,;]+/.exec(program.stdout())?.[0] ?? '';
}

async function initialize(url: string, more: Readonly<Record<string, string>> = {}): Promise<Response> {
  return await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...more },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    }),
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
}

describe('the program', { timeout: 60_000 }, () => {
  it('[CLI-READY][CLI-STOP] serve answers as soon as it says that it is ready, and SIGTERM ends it with 0', async () => {
    const program = start('serve', ...ANY_PORT);
    const response = await initialize(await untilReady(program));
    expect(response.status).toBe(200);
    expect(response.headers.get('mcp-session-id')).toBeTruthy();
    expect(await response.text()).toContain('"protocolVersion":"2025-06-18"');
    program.child.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stdout()).toMatch(
      /^Throughline is ready: http:\/\/127\.0\.0\.1:\d+\/mcp \(the demo server; log sqlite:\.throughline\/log\.db\)\n$/,
    );
  });

  it('[CLI-REREAD][CLI-HANGUP] SIGHUP has a changed tokens file used at once, and ends nothing; a faulty one is a line without its words', async () => {
    const hashed = (token: string): string => createHash('sha256').update(token).digest('hex');
    const file = path.join(cwd, 'tokens');
    writeFileSync(file, `alice:${hashed('tok-alice')}\nbob:${hashed('tok-bob')}\n`);
    const program = start('serve', ...ANY_PORT, '--auth-tokens-file', file);
    const url = await untilReady(program);
    const statusOf = async (token: string): Promise<number> => {
      const { status, body } = await initialize(url, { authorization: `Bearer ${token}` });
      await body?.cancel();
      return status;
    };
    expect([await statusOf('tok-alice'), await statusOf('tok-carol')]).toEqual([200, 401]);
    writeFileSync(file, `bob:${hashed('tok-bob')}\ncarol:${hashed('tok-carol')}\n`);
    program.child.kill('SIGHUP');
    await expect.poll(() => statusOf('tok-alice'), { timeout: DEADLINE_MS }).toBe(401);
    expect([await statusOf('tok-bob'), await statusOf('tok-carol')]).toEqual([200, 200]);
    writeFileSync(file, 'bob:tok-bob\n');
    program.child.kill('SIGHUP');
    await expect.poll(() => program.stderr(), { timeout: DEADLINE_MS }).toContain('access.refused');
    expect(program.stderr()).not.toMatch(/tok-bob/);
    expect(await statusOf('tok-bob')).toBe(200);
    program.child.kill('SIGTERM');
    expect(await program.ended).toEqual({ code: 0, signal: null });
  });

  it('[CLI-EMBEDDED-SECRET] a session of one run is known to the next on the same log', async () => {
    const first = start('serve', ...ANY_PORT);
    const opened = await initialize(await untilReady(first));
    await opened.text();
    first.child.kill('SIGKILL');
    await first.ended;
    const second = start('serve', ...ANY_PORT);
    const url = await untilReady(second);
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': opened.headers.get('mcp-session-id') ?? '',
      'mcp-protocol-version': '2025-06-18',
    };
    const body = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(202);
    const forged = { ...headers, 'mcp-session-id': `${headers['mcp-session-id'].slice(0, -4)}AAAA` };
    expect((await fetch(url, { method: 'POST', headers: forged, body })).status).toBe(404);
  });

  it('[CLI-LOGS] with --json-logs every line on stderr is JSON', async () => {
    const program = start('serve', '--json-logs', '--log', 'memory:', ...ANY_PORT);
    await untilReady(program);
    program.child.kill('SIGINT');
    expect((await program.ended).code).toBe(0);
    const lines = program.stderr().trimEnd().split('\n');
    expect(lines.length).toBeGreaterThan(1);
    for (const line of lines) expect(JSON.parse(line)).toHaveProperty('event');
  });

  it('[CLI-FAULTS] a wrong option ends it with 2, nothing on stdout and no log file', async () => {
    const { code, stdout, stderr } = await run('serve', '--lisen', '127.0.0.1:0', '--retention', '24');
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^throughline: 2 faults in the configuration; nothing was started\.\n {2}- --lisen: /);
    expect(() => readFileSync(path.join(cwd, '.throughline/log.db'))).toThrow();
  });

  it('[CLI-COMMANDS] help, version, config and secret commands print to stdout and end with 0', async () => {
    expect(await run('--version')).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
    expect((await run('--help')).stdout).toContain('Usage: throughline <command>');
    expect((await run('serve', '--help')).stdout).toContain('Usage: throughline serve [options]');
    expect((await run('help', 'serve')).stdout).toBe((await run('serve', '--help')).stdout);
    expect(await run('config', 'check')).toEqual({ code: 0, stdout: 'ok\n', stderr: '' });
    expect((await run('config', 'print')).stdout).toContain('listen: 127.0.0.1:8080\n');
    const secret = await run('secret', 'new');
    expect(secret.stdout).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
    expect((await run('secret', 'new')).stdout).not.toBe(secret.stdout);
    expect((await run()).code).toBe(2);
  });

  it('[CLI-TOKENS] secret hash prints the SHA-256 of the token on stdin, without its line break', async () => {
    const program = start('secret', 'hash');
    program.child.stdin?.end('abc\n');
    expect((await program.ended).code).toBe(0);
    expect(program.stdout()).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n');
    expect((await run('secret', 'hash')).code).toBe(2);
  });

  it('[CLI-FAILURES] a port in use is named with the way out', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    const { code, stdout, stderr } = await run('serve', '--log', 'memory:', '--listen', address, '--admin', 'off');
    other.close();
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(new RegExp(`throughline: ${address.replaceAll('.', '\\.')} is in use .*--listen`));
    expect(stderr).not.toContain('    at ');
  });

  it('[CLI-FAILURES] a log that is none, a log of a newer version and a folder that cannot be are named', async () => {
    writeFileSync(
      path.join(cwd, 'text.db'),
      'this is a text file, long enough to be taken for something else\n'.repeat(100),
    );
    const newer = new DatabaseSync(path.join(cwd, 'newer.db'));
    newer.exec('PRAGMA application_id = 0x54484c47; PRAGMA user_version = 999; CREATE TABLE a (b)');
    newer.close();
    for (const log of ['sqlite:text.db', 'sqlite:newer.db', 'sqlite:text.db/below/log.db']) {
      const { code, stdout, stderr } = await run('serve', '--log', log, ...ANY_PORT);
      expect([log, code, stdout]).toEqual([log, 1, '']);
      expect(stderr).toMatch(/^throughline: .*log/i);
      expect(stderr).not.toContain('    at ');
    }
  });

  it('[CLI-FAILURES] the folder of a log that was named is not made: it is named, with what to do', async () => {
    for (const role of ['serve', 'gateway', 'worker']) {
      const listening = role === 'worker' ? [] : ANY_PORT;
      const { code, stdout, stderr } = await run(role, '--log', 'sqlite:data/mistyped/log.db', ...listening);
      expect([role, code, stdout]).toEqual([role, 1, '']);
      const folder = path.join(realpathSync(cwd), 'data/mistyped');
      expect(stderr).toContain(
        `throughline: There is no folder ${folder} for the log. Create it, or name another file with --log sqlite:<file>.`,
      );
    }
    expect(existsSync(path.join(cwd, 'data'))).toBe(false);
  }, 60_000);

  it('[CLI-FAILURES] a server that does not start, dies, is no factory or is not there is named', async () => {
    writeFileSync(path.join(cwd, 'no-factory.mjs'), 'export const server = 1;\n');
    writeFileSync(path.join(cwd, 'throws.mjs'), "throw new Error('thrown while loading');\n");
    writeFileSync(path.join(cwd, 'dies.sh'), '#!/bin/sh\necho "no licence" >&2\nexit 3\n');
    chmodSync(path.join(cwd, 'dies.sh'), 0o755);
    const faults: [string[], RegExp][] = [
      [['--module', './no-factory.mjs'], /no-factory\.mjs/],
      [['--module', './throws.mjs'], /thrown while loading/],
      [['--module', './nowhere.mjs'], /nowhere\.mjs/],
      [['--stdio', 'no-such-command-anywhere'], /no-such-command-anywhere/],
      [['--stdio', './dies.sh'], /no licence/],
      [['--upstream', 'http://127.0.0.1:1/mcp'], /upstream/],
    ];
    for (const [args, expected] of faults) {
      const { code, stdout, stderr } = await run('serve', ...args, '--log', 'memory:', ...ANY_PORT);
      expect([args, code, stdout]).toEqual([args, 1, '']);
      expect(stderr).toMatch(expected);
      expect(stderr.split('\n').filter((line) => line.startsWith('throughline: '))).toHaveLength(1);
      expect(stderr).not.toContain('    at ');
    }
  });
});
