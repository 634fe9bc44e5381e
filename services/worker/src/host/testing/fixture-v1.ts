/** A test server on SDK v1, as its authors would write it; the twin of `fixture-v2.ts`. Needs nothing of the product. */
import { appendFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

function text(value: string): CallToolResult {
  return { content: [{ type: 'text', text: value }] };
}

const effectShape = { file: z.string(), id: z.string(), ms: z.number().default(0) };

async function runEffect({ file, id, ms }: { file: string; id: string; ms: number }): Promise<CallToolResult> {
  appendFileSync(file, `start ${id}\n`);
  await pause(ms);
  appendFileSync(file, `end ${id}\n`);
  return text(`effect ${id}`);
}

export function createFixtureServer(): McpServer {
  const server = new McpServer(
    { name: 'fixture-v1', version: '1.0.0' },
    { capabilities: { logging: {}, tools: { listChanged: true } } },
  );

  server.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text: value }) => text(value));

  server.registerTool(
    'countdown',
    { inputSchema: { from: z.number(), intervalMs: z.number().default(0) } },
    async ({ from, intervalMs }, extra) => {
      const progressToken = extra._meta?.progressToken;
      for (let progress = 1; progress <= from; progress += 1) {
        if (intervalMs > 0) await pause(intervalMs);
        if (progressToken === undefined) continue;
        await extra.sendNotification({
          method: 'notifications/progress',
          params: { progressToken, progress, total: from },
        });
      }
      return text(`done ${String(from)}`);
    },
  );

  server.registerTool('ask', { inputSchema: { question: z.string() } }, async ({ question }) => {
    const { action, content } = await server.server.elicitInput({
      message: question,
      requestedSchema: { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] },
    });
    return text(`${action} ${JSON.stringify(content ?? {})}`);
  });

  server.registerTool('sample', { inputSchema: { prompt: z.string() } }, async ({ prompt }) => {
    const { content } = await server.server.createMessage({
      messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
      maxTokens: 10,
    });
    return text(JSON.stringify(content));
  });

  server.registerTool('effect', { inputSchema: effectShape }, runEffect);
  server.registerTool(
    'idempotent_effect',
    { inputSchema: effectShape, annotations: { idempotentHint: true } },
    runEffect,
  );

  server.registerTool(
    'read_only',
    { inputSchema: { ms: z.number().default(0) }, annotations: { readOnlyHint: true } },
    async ({ ms }) => {
      await pause(ms);
      return text('read');
    },
  );

  server.registerTool('notify', { inputSchema: { text: z.string() } }, async ({ text: data }) => {
    await server.sendLoggingMessage({ level: 'info', data });
    return text('notified');
  });

  server.registerTool('close_stream', {}, async (extra) => {
    const couldClose = extra.closeSSEStream !== undefined;
    extra.closeSSEStream?.();
    await pause(50);
    return text(couldClose ? 'closed' : 'cannot close');
  });

  server.registerTool('die', {}, async () => {
    process.stderr.write('the fixture dies now\n');
    await pause(20);
    process.exit(3);
  });

  return server;
}

// eslint-disable-next-line no-restricted-syntax -- a hosted module has a default export
export default createFixtureServer;
