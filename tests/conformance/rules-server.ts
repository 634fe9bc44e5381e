/** The demo server with a tool that gives up its question, as SDK servers do by a cancel, and one that says what its client can do. */
import { createDemoServer } from '@throughline/worker/demo-server';
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

export default function createRulesServer(): McpServer {
  const server = createDemoServer();
  server.registerTool('ask_briefly', { inputSchema: z.object({ ms: z.int() }) }, async ({ ms }, ctx) => {
    const question = {
      method: 'elicitation/create',
      params: { message: 'Quick?', requestedSchema: { type: 'object', properties: {} } },
    } as const;
    const outcome = await ctx.mcpReq.send(question, { timeout: ms }).then(
      () => 'answered',
      () => 'gave up',
    );
    return { content: [{ type: 'text', text: outcome }] };
  });
  server.registerTool('client_can', {}, () => ({
    content: [{ type: 'text', text: JSON.stringify(server.server.getClientCapabilities()) }],
  }));
  return server;
}
