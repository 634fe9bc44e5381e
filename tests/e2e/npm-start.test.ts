/** The first command of the README, to the letter, and several servers by one file. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeScratchFolder, startThroughline, waitUntil } from '@throughline/testkit/processes';
import { expect, it } from 'vitest';
import { CLIENT_LINES, connectOfficial } from './official-client.ts';
import { SERVER_V1, SERVER_V2 } from './fixtures/paths.ts';
import { showLogsOnFailure } from './show-logs.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const PUBLISHED = 'npx -y @modelcontextprotocol/server-everything stdio';

it('[E2E-PUBLISHED] npm start -- --stdio "npx -y …" serves a published server, and SIGTERM ends it with 0', async () => {
  using folder = makeScratchFolder();
  const args = [
    '--stdio',
    PUBLISHED,
    '--listen',
    '127.0.0.1:0',
    '--admin',
    'off',
    '--log',
    `sqlite:${path.join(folder.path, 'log.db')}`,
  ];
  const child = spawn('npm', ['start', '--', ...args], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stdout.on('data', (data: Buffer) => (said += data.toString()));
  child.stderr.on('data', (data: Buffer) => (said += data.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  try {
    await waitUntil('the ready line', () => /Throughline is ready: \S+/.test(said), 180_000);
    const url = /Throughline is ready: (\S+)/.exec(said)?.[1] ?? '';
    for (const line of CLIENT_LINES) {
      await using client = await connectOfficial(line, { url });
      expect(client.serverName()).toBe('mcp-servers/everything');
      expect(await client.callTool('echo', { message: 'by the README' })).toBe('Echo: by the README');
    }
  } finally {
    child.kill('SIGTERM');
  }
  expect(await ended, said).toBe(0);
}, 240_000);

it('[E2E-SERVERS] throughline.yaml serves several servers, each at /mcp/<name>, with sessions of their own', async () => {
  using folder = makeScratchFolder();
  const file = path.join(folder.path, 'servers.yaml');
  writeFileSync(
    file,
    `servers:\n  one: { module: ${JSON.stringify(SERVER_V1)} }\n  two: { module: ${JSON.stringify(SERVER_V2)} }\n`,
  );
  await using serve = await startThroughline('serve', { folder: folder.path, args: ['--config', file] });
  showLogsOnFailure(serve);
  const base = new URL('/mcp/', serve.url).href;
  await using one = await connectOfficial('v1', { url: `${base}one` });
  await using two = await connectOfficial('v2', { url: `${base}two` });
  expect([one.serverName(), two.serverName()]).toEqual(['fixture-v1', 'fixture-v2']);
  expect(await Promise.all([one.callTool('echo', { text: '1' }), two.callTool('echo', { text: '2' })])).toEqual([
    '1',
    '2',
  ]);
}, 60_000);
