/** mcp-remote: a bridge for clients that speak to local servers only. It is spoken to through the official client v1. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { ClientSource, InteropSession } from '../interop-client.ts';
import { npmProgram } from './npm.ts';

const NAME = 'mcp-remote';
const VERSION = '0.15.1';
const CONNECT_MS = 60_000;
const CALL_MS = 120_000;

export const mcpRemoteClient: ClientSource = {
  name: NAME,
  async prepare(options) {
    const program = await npmProgram(NAME, VERSION, NAME, options);
    if ('failed' in program) return { name: NAME, skipped: program.failed };
    return { name: NAME, version: VERSION, reportsProgress: true, connect: (url) => connect(program.file, url) };
  },
};

async function connect(file: string, url: string): Promise<InteropSession> {
  const folder = mkdtempSync(path.join(tmpdir(), 'throughline-mcp-remote-'));
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [file, url],
    env: { ...process.env, MCP_REMOTE_CONFIG_DIR: folder },
    stderr: 'ignore',
  });
  const client = new Client({ name: 'interop', version: '1.0.0' });
  const end = async (): Promise<void> => {
    await client.close();
    rmSync(folder, { recursive: true, force: true });
  };
  let onStep: (step: number) => void = () => undefined;
  try {
    await client.connect(transport, { timeout: CONNECT_MS });
  } catch (error) {
    await end();
    throw error;
  }
  // As it comes: the SDK forgets who waits for progress when the result lies in the same chunk of a pipe.
  const deliver = transport.onmessage;
  transport.onmessage = (message) => {
    if ('method' in message && message.method === 'notifications/progress')
      onStep(Number(message.params?.['progress']));
    deliver?.(message);
  };
  return {
    async callTool(name, args, onProgress) {
      onStep = onProgress ?? (() => undefined);
      const result = await client.callTool({ name, arguments: args }, undefined, {
        timeout: CALL_MS,
        onprogress: () => undefined,
      });
      return (result.content as { text?: string }[]).map(({ text }) => text ?? '').join('\n');
    },
    [Symbol.asyncDispose]: end,
  };
}
