/** The client snippets of the README, run as they stand there, with the published programs. They are fetched by npx: deep lane only. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { makeScratchFolder, startThroughline } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { showLogsOnFailure } from './show-logs.ts';

const README = readFileSync(path.join(import.meta.dirname, '../../README.md'), 'utf8');
const README_URL = 'http://127.0.0.1:8080/mcp';
const run = promisify(execFile);

/** The one snippet of the README that begins with `start`, as words, for the server at `url`. */
function snippet(start: string, url: string): string[] {
  const found = [...README.matchAll(/`([^`\n]+)`/g)]
    .map(([, text = '']) => text)
    .filter((text) => text.startsWith(start));
  expect(found).toHaveLength(1);
  expect(found[0]).toContain(README_URL);
  return (found[0] ?? '').replace(README_URL, url).split(' ');
}

describe.runIf(process.env['DEEP'] === '1')('clients as the README starts them', () => {
  it('[E2E-README-CLIENTS] the Inspector lists the tools', async () => {
    using folder = makeScratchFolder();
    await using serve = await startThroughline('serve', { folder: folder.path });
    showLogsOnFailure(serve);
    const [command = '', ...args] = snippet('npx @modelcontextprotocol/inspector', serve.url);
    const { stdout } = await run(command, ['-y', ...args], { cwd: folder.path, timeout: 240_000 });
    const answer = JSON.parse(stdout) as { tools: { name: string }[] };
    expect(answer.tools.map((tool) => tool.name)).toContain('countdown');
  }, 300_000);

  it('[E2E-README-CLIENTS] mcp-remote serves a stdio client', async () => {
    using folder = makeScratchFolder();
    await using serve = await startThroughline('serve', { folder: folder.path });
    showLogsOnFailure(serve);
    const [command = '', ...args] = snippet('npx mcp-remote', serve.url);
    const client = new Client({ name: 'readme', version: '1' });
    const env = { ...process.env, MCP_REMOTE_CONFIG_DIR: folder.path } as Record<string, string>;
    const transport = new StdioClientTransport({
      command,
      args: ['-y', ...args],
      cwd: folder.path,
      env,
      stderr: 'ignore',
    });
    await client.connect(transport, { timeout: 240_000 });
    // As it comes: the SDK forgets who waits for progress when the result lies in the same chunk of a pipe.
    const steps: unknown[] = [];
    const deliver = transport.onmessage;
    transport.onmessage = (message) => {
      if ('method' in message && message.method === 'notifications/progress') steps.push(message.params?.['progress']);
      deliver?.(message);
    };
    const result = await client.callTool({ name: 'countdown', arguments: { from: 3, intervalMs: 10 } }, undefined, {
      onprogress: () => undefined,
    });
    expect(steps).toEqual([1, 2, 3]);
    expect(result.content).toEqual([{ type: 'text', text: 'done 3' }]);
    await client.close();
  }, 300_000);
});
