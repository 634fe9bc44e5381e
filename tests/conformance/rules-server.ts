/** The demo server with a tool that gives up its question, as SDK servers do by a cancel, and tools that say what its client can do, and ask it all the same. */
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
  server.registerTool('ask_anyway', {}, async (ctx) => {
    const messages = [{ role: 'user', content: { type: 'text', text: 'What?' } }] as const;
    const url = { mode: 'url', message: 'Go.', url: 'https://example.com', elicitationId: 'e1' } as const;
    const heard = [
      ctx.mcpReq.send({ method: 'roots/list' }),
      ctx.mcpReq.send({ method: 'sampling/createMessage', params: { messages: [...messages], maxTokens: 10 } }),
      ctx.mcpReq.send({ method: 'elicitation/create', params: url }),
    ];
    const refusals = (await Promise.allSettled(heard)).map((each) =>
      each.status === 'fulfilled' ? 'answered' : refusalOf(each.reason),
    );
    return { content: [{ type: 'text', text: JSON.stringify(refusals) }] };
  });
  return server;
}

function refusalOf(reason: unknown): unknown {
  const { code, data } = reason as {
    readonly code?: number;
    readonly data?: { readonly requiredCapabilities?: unknown };
  };
  return [code, data?.requiredCapabilities];
}
