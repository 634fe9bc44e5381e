/** A server whose tool says what it does step by step, as log messages: they are for whoever listens, also after a reload. */
import { setTimeout as pause } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

export default function createStepsServer(): McpServer {
  const server = new McpServer({ name: 'steps', version: '1.0.0' }, { capabilities: { logging: {} } });
  server.registerTool(
    'walk',
    {
      description: 'Takes steps, and says each.',
      inputSchema: z.object({ steps: z.int().min(1).max(10_000), intervalMs: z.int().min(1).max(60_000) }),
    },
    async ({ steps, intervalMs }, { mcpReq }) => {
      for (let step = 1; step <= steps; step++) {
        await pause(intervalMs, undefined, { signal: mcpReq.signal });
        await mcpReq.notify({
          method: 'notifications/message',
          params: { level: 'info', logger: 'walk', data: { step, of: steps } },
        });
      }
      return { content: [{ type: 'text', text: `${steps} steps are taken.` }] };
    },
  );
  return server;
}
