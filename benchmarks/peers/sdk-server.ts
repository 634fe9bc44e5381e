/** The official SDK's own HTTP server: a transport a session, an event store in memory. Prints its URL. */
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';
import createBenchServer from './bench-server.ts';

/** As the SDK's example: ids of a counter, events in a map. */
function createEventStore(): EventStore {
  const events = new Map<string, { streamId: string; message: unknown }>();
  let last = 0;
  return {
    async storeEvent(streamId, message) {
      last += 1;
      const id = `${streamId}_${last}`;
      events.set(id, { streamId, message });
      return id;
    },
    async replayEventsAfter() {
      return '';
    },
  };
}

const transports = new Map<string, StreamableHTTPServerTransport>();
const app = express();
app.use(express.json({ limit: '4mb' }));
app.all('/mcp', async (request, response) => {
  const id = request.headers['mcp-session-id'];
  let transport = typeof id === 'string' ? transports.get(id) : undefined;
  if (transport === undefined) {
    const made = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      eventStore: createEventStore(),
      onsessioninitialized: (session) => {
        transports.set(session, made);
      },
    });
    await createBenchServer().connect(made);
    transport = made;
  }
  await transport.handleRequest(request, response, request.body);
});
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp\n`);
});
