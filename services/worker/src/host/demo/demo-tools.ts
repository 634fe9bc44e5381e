/** The tools of the demo that answer by themselves. Names, texts and schemas are those the conformance suite asks for. */
import { setTimeout as pause } from 'node:timers/promises';
import { fromJsonSchema } from '@modelcontextprotocol/server';
import type { CallToolResult, McpServer, ServerContext } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { PIXEL_PNG_BASE64, SILENT_WAV_BASE64 } from './demo-content.ts';

const STEP_MS = 50;
const RECONNECT_MS = 100;

function text(value: string): CallToolResult {
  return { content: [{ type: 'text', text: value }] };
}

async function reportProgress(ctx: ServerContext, progress: number, total: number): Promise<void> {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  if (progressToken === undefined) return;
  await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
}

/** A schema that no schema library can hold: it must reach the client as it is here. */
const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }, { required: ['name'] }, {}] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: {},
  additionalProperties: false,
} as const;

export function addDemoTools(server: McpServer): void {
  server.registerTool(
    'countdown',
    {
      title: 'Countdown',
      description: 'Counts down from a number, reports each step as progress, and says when it is done.',
      inputSchema: z.object({
        from: z.int().min(1).max(100_000).describe('Number of steps'),
        intervalMs: z.int().min(0).max(60_000).default(1000).describe('Milliseconds a step'),
      }),
    },
    async ({ from, intervalMs }, ctx) => {
      for (let step = 1; step <= from; step += 1) {
        await pause(intervalMs, undefined, { signal: ctx.mcpReq.signal });
        await reportProgress(ctx, step, from);
      }
      return text(`done ${String(from)}`);
    },
  );

  server.registerTool(
    'test_simple_text',
    { title: 'Simple text', description: 'Returns one text.', annotations: { readOnlyHint: true } },
    () => text('This is a simple text response for testing.'),
  );

  server.registerTool(
    'test_image_content',
    { title: 'Image', description: 'Returns one image.', annotations: { readOnlyHint: true } },
    () => ({ content: [{ type: 'image', data: PIXEL_PNG_BASE64, mimeType: 'image/png' }] }),
  );

  server.registerTool(
    'test_audio_content',
    { title: 'Audio', description: 'Returns one sound.', annotations: { readOnlyHint: true } },
    () => ({ content: [{ type: 'audio', data: SILENT_WAV_BASE64, mimeType: 'audio/wav' }] }),
  );

  server.registerTool(
    'test_embedded_resource',
    { title: 'Embedded resource', description: 'Returns one embedded resource.', annotations: { readOnlyHint: true } },
    () => ({
      content: [
        {
          type: 'resource',
          resource: {
            uri: 'test://embedded-resource',
            mimeType: 'text/plain',
            text: 'This is an embedded resource content.',
          },
        },
      ],
    }),
  );

  server.registerTool(
    'test_multiple_content_types',
    {
      title: 'Mixed content',
      description: 'Returns a text, an image and a resource.',
      annotations: { readOnlyHint: true },
    },
    () => ({
      content: [
        { type: 'text', text: 'Multiple content types test:' },
        { type: 'image', data: PIXEL_PNG_BASE64, mimeType: 'image/png' },
        {
          type: 'resource',
          resource: {
            uri: 'test://mixed-content-resource',
            mimeType: 'application/json',
            text: JSON.stringify({ test: 'data', value: 123 }),
          },
        },
      ],
    }),
  );

  server.registerTool(
    'test_tool_with_logging',
    { title: 'Logging', description: 'Sends three log messages while it runs.' },
    async (ctx) => {
      const log = (data: string): Promise<void> =>
        ctx.mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data } });
      await log('Tool execution started');
      await pause(STEP_MS);
      await log('Tool processing data');
      await pause(STEP_MS);
      await log('Tool execution completed');
      return text('Tool with logging executed successfully');
    },
  );

  server.registerTool(
    'test_tool_with_progress',
    { title: 'Progress', description: 'Reports its progress three times.' },
    async (ctx) => {
      await reportProgress(ctx, 0, 100);
      await pause(STEP_MS);
      await reportProgress(ctx, 50, 100);
      await pause(STEP_MS);
      await reportProgress(ctx, 100, 100);
      return text('Tool with progress executed successfully');
    },
  );

  server.registerTool('test_error_handling', { title: 'Error', description: 'Always fails.' }, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });

  server.registerTool(
    'test_reconnection',
    {
      title: 'Reconnection',
      description: 'Closes the stream of its call, so that the client has to come back for the result.',
    },
    async (ctx) => {
      ctx.http?.closeSSE?.();
      await pause(RECONNECT_MS);
      return text('Reconnection test completed successfully');
    },
  );

  server.registerTool(
    'json_schema_2020_12_tool',
    {
      title: 'JSON Schema 2020-12',
      description: 'Takes arguments whose schema uses JSON Schema 2020-12.',
      inputSchema: fromJsonSchema<Record<string, unknown>>(SCHEMA_2020_12),
      annotations: { readOnlyHint: true },
    },
    (args) => text(`JSON Schema 2020-12 tool called with: ${JSON.stringify(args)}`),
  );
}
