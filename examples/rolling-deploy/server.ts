/**
 * A server with a tool that takes longer than any process that runs it. `idempotentHint` says two things of it: to run
 * it again does no harm, and its conversation is deterministic, so another worker may run it again with what was said.
 * A page that is indexed is marked on disk, so a second run passes over it at once.
 */
import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { indexedPages, INDEXED, releasedPages } from './pages.ts';

const PAGE_MS = 100;
const POLL_MS = 20;

export default function createIndexServer(): McpServer {
  const server = new McpServer({ name: 'index', version: '1.0.0' });
  server.registerTool(
    'index',
    {
      description: 'Indexes pages as they come in, and reports each one as progress.',
      inputSchema: z.object({ folder: z.string(), pages: z.int().min(1).max(1000) }),
      annotations: { idempotentHint: true },
    },
    async ({ folder, pages }, { mcpReq }) => {
      const { signal, _meta } = mcpReq;
      const progressToken = _meta?.progressToken;
      for (let page = 1; page <= pages; page++) {
        while (releasedPages(folder) < page) await pause(POLL_MS, undefined, { signal });
        if (indexedPages(folder).length < page) {
          await pause(PAGE_MS, undefined, { signal });
          appendFileSync(path.join(folder, INDEXED), `${page} ${process.pid}\n`);
        }
        if (progressToken !== undefined)
          await mcpReq.notify({
            method: 'notifications/progress',
            params: { progressToken, progress: page, total: pages },
          });
      }
      // The SDK's client forgets who waits for progress as soon as it has the result.
      await pause(PAGE_MS, undefined, { signal });
      return { content: [{ type: 'text', text: `${pages} pages are indexed.` }] };
    },
  );
  server.registerTool('look', { description: 'Answers at once.', annotations: { readOnlyHint: true } }, () => ({
    content: [{ type: 'text', text: 'here' }],
  }));
  return server;
}
