/** The MCP server that is measured on both sides: the official SDK's, with tools that do next to nothing. */
import { setTimeout as pause } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';

/** Makes a progress notification of about 300 bytes on the wire. */
const FILLER = 'x'.repeat(150);

export default function createBenchServer(): McpServer {
  const server = new McpServer({ name: 'bench', version: '1.0.0' }, { capabilities: { logging: {}, tools: {} } });
  const answer = ({ text }: { text: string }): { content: { type: 'text'; text: string }[] } => ({
    content: [{ type: 'text', text }],
  });
  server.registerTool('look', { inputSchema: { text: z.string() }, annotations: { readOnlyHint: true } }, answer);
  server.registerTool('act', { inputSchema: { text: z.string() } }, answer);
  server.registerTool(
    'burst',
    { inputSchema: { count: z.number(), intervalMs: z.number(), delayMs: z.number() } },
    async ({ count, intervalMs, delayMs }, { _meta, sendNotification }) => {
      const progressToken = _meta?.progressToken ?? 0;
      if (delayMs > 0) await pause(delayMs);
      for (let progress = 1; progress <= count; progress += 1) {
        if (intervalMs > 0) await pause(intervalMs);
        await sendNotification({
          method: 'notifications/progress',
          params: { progressToken, progress, total: count, message: FILLER },
        });
      }
      return answer({ text: `sent ${count}` });
    },
  );
  return server;
}
