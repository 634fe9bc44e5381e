/** The guides as a newcomer follows them: an empty folder, the packages as they are packed, the programs as they stand. */
import { execFile, spawn } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { findFreePort } from '@throughline/testkit';
import { makeScratchFolder, RawClient, startThroughline, waitUntil } from '@throughline/testkit/processes';
import type { ScratchFolder } from '@throughline/testkit/processes';
import { publint } from 'publint';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { showLogsOnFailure } from './show-logs.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const run = promisify(execFile);
const STEP_MS = 240_000;

/** As they are for who has no part in this repository: no conditions of ours. */
const environment = (): NodeJS.ProcessEnv => {
  const { NODE_OPTIONS: _options, ...others } = process.env;
  return others;
};

function readGuide(name: string): string {
  return readFileSync(path.join(ROOT, 'docs/guides', `${name}.md`), 'utf8');
}

/** The blocks of a guide in one language, in order. */
function blocks(guide: string, language: string): string[] {
  return [...guide.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))].map(([, text = '']) => text);
}

describe.runIf(process.env['DEEP'] === '1')('in an empty folder, with the packages that this repository packs', () => {
  const scratch = makeScratchFolder();
  const packages = path.join(scratch.path, 'packages');
  beforeAll(async () => {
    await run('npm', ['run', '--silent', 'packages', '--', '--to', packages], { cwd: ROOT, timeout: STEP_MS });
  }, STEP_MS);
  afterAll(() => scratch[Symbol.dispose]());

  /** A folder in which the guide's own line has installed everything. */
  async function follow(guide: string, more: readonly string[] = []): Promise<ScratchFolder> {
    const folder = makeScratchFolder();
    writeFileSync(path.join(folder.path, 'package.json'), '{ "private": true, "type": "module" }');
    const line = /^npm install <repository>\/packages\/\*\.tgz[^#\n]*/m.exec(guide)?.[0] ?? 'false';
    const command = [line.replace('<repository>/packages', packages), '--no-audit --no-fund --loglevel=error', ...more];
    await run('sh', ['-c', command.join(' ')], { cwd: folder.path, timeout: STEP_MS, env: environment() });
    return folder;
  }

  /** The types as a project with strict settings sees them. */
  async function checkTypes(folder: string, file: string): Promise<void> {
    const compilerOptions = {
      ...{ module: 'NodeNext', target: 'ES2024', strict: true, exactOptionalPropertyTypes: true, noEmit: true },
      ...{ types: ['node'], typeRoots: [path.join(ROOT, 'node_modules/@types')], skipLibCheck: false },
    };
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }));
    const checked = run(path.join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder], { cwd: folder, timeout: STEP_MS });
    await checked.catch((error: unknown) => expect.fail((error as { stdout?: string }).stdout ?? String(error)));
  }

  it(
    '[DOC-GUIDES] client.md: the program runs, its types hold, and a second run goes on in the session of the first',
    { timeout: 2 * STEP_MS },
    async () => {
      const guide = readGuide('client');
      using folder = await follow(guide);
      await using serve = await startThroughline('serve', { folder: folder.path });
      showLogsOnFailure(serve);
      const [program = ''] = blocks(guide, 'ts');
      expect(program).toContain('http://127.0.0.1:8080/mcp');
      writeFileSync(path.join(folder.path, 'app.ts'), program.replace('http://127.0.0.1:8080/mcp', serve.url));
      const runProgram = async (): Promise<string> => {
        const options = { cwd: folder.path, timeout: STEP_MS, env: environment() };
        const { stdout, stderr } = await run('node', ['app.ts'], options);
        expect(stderr).toBe('');
        return stdout;
      };
      const first = await runProgram();
      expect(first).toMatch(/^\S+\.\d+\.\d+\.\d+\.\S+ [1-9]\d*\n$/);
      expect(await runProgram()).toBe(first);
      // What is wrong is seen: the declarations are there.
      const wrong = `${program}\n// @ts-expect-error: no such policy\nnew ResumableTransport('http://x', { policy: 'none' });\n`;
      writeFileSync(path.join(folder.path, 'app.ts'), wrong);
      await checkTypes(folder.path, 'app.ts');
    },
  );

  it(
    '[DOC-GUIDES] producer.md: the program is heard by the clients of the sessions that it is given, and its types hold',
    { timeout: 2 * STEP_MS },
    async () => {
      const guide = readGuide('producer');
      using folder = await follow(guide);
      await using serve = await startThroughline('serve', { folder: folder.path });
      showLogsOnFailure(serve);
      const clients = await Promise.all([1, 2].map(() => RawClient.connect(serve.url)));
      const streams = await Promise.all(clients.map((client) => client.listen(serve.url)));
      const [program = '', onKafka = ''] = blocks(guide, 'ts');
      writeFileSync(path.join(folder.path, 'report.ts'), program);
      const ids = clients.map(({ sessionId }) => sessionId);
      const args = ['report.ts', ...ids, 'no-session'];
      const { stdout, stderr } = await run('node', args, { cwd: folder.path, timeout: STEP_MS, env: environment() });
      expect(stderr).toBe('');
      const said = stdout
        .replaceAll(/ at \d+$/gm, ' at N')
        .trim()
        .split('\n');
      expect(said.toSorted()).toEqual(
        ['no-session SESSION_UNKNOWN', ...ids.map((id) => `${id} appended at N`)].toSorted(),
      );
      for (const stream of streams) await stream.until('the report', ({ data }) => data.includes('report 7 is ready'));
      writeFileSync(
        path.join(folder.path, 'types.ts'),
        `${onKafka}\n${program
          .split('\n')
          .filter((row) => !/const log = |openSqliteLog/.test(row))
          .join('\n')}`,
      );
      await checkTypes(folder.path, 'types.ts');
    },
  );

  it(
    '[DOC-GUIDES] event-store.md: the whole server that it names runs on the packed packages',
    { timeout: 2 * STEP_MS },
    async () => {
      const guide = readGuide('event-store');
      using folder = await follow(guide, ['@modelcontextprotocol/sdk', 'express', 'zod']);
      for (const name of ['sdk-server-v1.ts', 'sdk-tools.ts']) {
        copyFileSync(path.join(ROOT, 'tests/e2e/fixtures', name), path.join(folder.path, name));
      }
      const [make = ''] = /(?<=`)node -p [^`]+(?=`)/.exec(guide) ?? [];
      const { stdout: secret } = await run('sh', ['-c', make], { timeout: STEP_MS });
      const port = await findFreePort();
      const child = spawn('node', ['sdk-server-v1.ts', String(port)], {
        cwd: folder.path,
        env: { ...environment(), MCP_SESSION_SECRET: secret.trim() },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let said = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
      try {
        await waitUntil('the server', () => said !== '', STEP_MS);
        expect(said).toBe('ready\n');
        const url = `http://127.0.0.1:${port}/mcp`;
        const client = await RawClient.connect(url);
        const call = await client.callTool(url, 'work', { count: 2, intervalMs: 1 }, 'call-1');
        const { id } = await call.until('the result', ({ data }) => data.includes('worked 2'));
        // Ids are those of the log.
        expect(id).toMatch(/^\w+\.\d+\.\d+\.\S+$/);
      } finally {
        child.kill('SIGKILL');
      }
    },
  );

  it('[DOC-GUIDES] each package is as Node, bundlers and TypeScript expect one', { timeout: STEP_MS }, async () => {
    using folder = await follow(readGuide('client'));
    for (const name of ['protocol', 'log', 'history', 'tail', 'client', 'event-store', 'producer']) {
      const pkgDir = path.join(folder.path, 'node_modules/@throughline', name);
      const { messages } = await publint({ pkgDir, pack: false, strict: true });
      expect(messages, name).toEqual([]);
    }
  });
});
