/** A test server on SDK v2, as its authors would write it; the twin of `fixture-v1.ts`. Needs nothing of the product. */
import { appendFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import type { CallToolResult } from '@modelcontextprotocol/server';
import { z } from 'zod';

function text(value: string): CallToolResult {
  return { content: [{ type: 'text', text: value }] };
}

const EffectSchema = z.object({ file: z.string(), id: z.string(), ms: z.int().default(0) });

async function runEffect({ file, id, ms }: z.infer<typeof EffectSchema>): Promise<CallToolResult> {
  appendFileSync(file, `start ${id}\n`);
  await pause(ms);
  appendFileSync(file, `end ${id}\n`);
  return text(`effect ${id}`);
}

export function createFixtureServer(): McpServer {
  const server = new McpServer(
    { name: 'fixture-v2', version: '1.0.0' },
    { capabilities: { logging: {}, tools: { listChanged: true } } },
  );

  server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, ({ text: value }) => text(value));

  server.registerTool(
    'countdown',
    { inputSchema: z.object({ from: z.int(), intervalMs: z.int().default(0) }) },
    async ({ from, intervalMs }, ctx) => {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      for (let progress = 1; progress <= from; progress += 1) {
        if (intervalMs > 0) await pause(intervalMs);
        if (progressToken === undefined) continue;
        await ctx.mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken, progress, total: from },
        });
      }
      return text(`done ${String(from)}`);
    },
  );

  server.registerTool('ask', { inputSchema: z.object({ question: z.string() }) }, async ({ question }, ctx) => {
    const { action, content } = await ctx.mcpReq.elicitInput({
      message: question,
      requestedSchema: { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] },
    });
    return text(`${action} ${JSON.stringify(content ?? {})}`);
  });

  server.registerTool('sample', { inputSchema: z.object({ prompt: z.string() }) }, async ({ prompt }, ctx) => {
    const { content } = await ctx.mcpReq.requestSampling({
      messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
      maxTokens: 10,
    });
    return text(JSON.stringify(content));
  });

  server.registerTool('effect', { inputSchema: EffectSchema }, runEffect);
  server.registerTool(
    'idempotent_effect',
    { inputSchema: EffectSchema, annotations: { idempotentHint: true } },
    runEffect,
  );

  server.registerTool(
    'read_only',
    { inputSchema: z.object({ ms: z.int().default(0) }), annotations: { readOnlyHint: true } },
    async ({ ms }) => {
      await pause(ms);
      return text('read');
    },
  );

  server.registerTool('notify', { inputSchema: z.object({ text: z.string() }) }, async ({ text: data }) => {
    await server.sendLoggingMessage({ level: 'info', data });
    return text('notified');
  });

  server.registerTool('close_stream', {}, async (ctx) => {
    const couldClose = ctx.http?.closeSSE !== undefined;
    ctx.http?.closeSSE?.();
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
