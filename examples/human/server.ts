/**
 * A server whose tool asks a person twice. `idempotentHint` says two things of it: to run it again does no harm, and
 * its conversation is deterministic, so it can be run again with what was said and answered before.
 */
import { appendFileSync } from 'node:fs';
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

export default function createBookingServer(): McpServer {
  const server = new McpServer({ name: 'booking', version: '1.0.0' });
  server.registerTool(
    'book',
    { inputSchema: z.object({ ledger: z.string() }), annotations: { idempotentHint: true } },
    async ({ ledger }, { mcpReq }) => {
      // For the demonstration only: how often it ran, and where.
      appendFileSync(ledger, `${process.pid}\n`);
      const ask = async (message: string): Promise<string> => {
        const { content } = await mcpReq.elicitInput({
          message,
          requestedSchema: { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] },
        });
        return String(content?.['answer']);
      };
      const name = await ask('Who travels?');
      const seat = await ask(`Which seat for ${name}?`);
      return { content: [{ type: 'text', text: `${name} sits on ${seat}.` }] };
    },
  );
  return server;
}
