/** The MCP server that is measured on both sides: the official SDK's, with tools that do next to nothing. */
import { setTimeout as pause } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';

/** Makes a progress notification of about 300 bytes on the wire. */
const FILLER = 'x'.repeat(150);

/** What all sessions of one process wait for, by name, and the work that waits. */
const gates = new Map<string, Gate>();

interface Gate {
  readonly open: PromiseWithResolvers<unknown>;
  readonly work: Set<Promise<unknown>>;
}

function gateOf(name: string): Gate {
  const gate = gates.get(name) ?? { open: Promise.withResolvers<unknown>(), work: new Set() };
  gates.set(name, gate);
  return gate;
}

export default function createBenchServer(): McpServer {
  const server = new McpServer({ name: 'bench', version: '1.0.0' }, { capabilities: { logging: {}, tools: {} } });
  const answer = ({ text }: { text: string }): { content: { type: 'text'; text: string }[] } => ({
    content: [{ type: 'text', text }],
  });
  server.registerTool('look', { inputSchema: { text: z.string() }, annotations: { readOnlyHint: true } }, answer);
  server.registerTool('act', { inputSchema: { text: z.string() } }, answer);
  server.registerTool(
    'burst',
    { inputSchema: { count: z.number(), intervalMs: z.number(), gate: z.string() } },
    ({ count, intervalMs, gate }, { _meta, sendNotification }) => {
      const progressToken = _meta?.progressToken ?? 0;
      const { open, work } = gateOf(gate);
      const send = async (): Promise<void> => {
        await open.promise;
        for (let progress = 1; progress <= count; progress += 1) {
          if (intervalMs > 0) await pause(intervalMs);
          await sendNotification({
            method: 'notifications/progress',
            params: { progressToken, progress, total: count, message: FILLER },
          });
        }
      };
      const sent = send();
      work.add(sent);
      return sent.then(() => answer({ text: `sent ${count}` }));
    },
  );
  // Answers when everything that waited at the gate was sent.
  server.registerTool('open', { inputSchema: { gate: z.string() } }, async ({ gate }) => {
    const { open, work } = gateOf(gate);
    open.resolve('open');
    await Promise.allSettled(work);
    return answer({ text: `${work.size} went through` });
  });
  return server;
}
