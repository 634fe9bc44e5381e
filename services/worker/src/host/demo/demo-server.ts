/**
 * The demo server: everything the official conformance suite asks a server for, and `countdown`. It keeps nothing
 * between calls, so its sessions can be restored on another worker (`onOwnerLoss: restore`).
 */
import { McpServer } from '@modelcontextprotocol/server';
import { addDemoPrompts } from './demo-prompts.ts';
import { addDemoQuestions } from './demo-questions.ts';
import { addDemoResources } from './demo-resources.ts';
import { addDemoTools } from './demo-tools.ts';

export function createDemoServer(): McpServer {
  const server = new McpServer(
    { name: 'throughline-demo', version: '0.1.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
    },
  );
  addDemoTools(server);
  addDemoQuestions(server);
  addDemoResources(server);
  addDemoPrompts(server);
  return server;
}

/** A hosted module has a default export by contract: one new server a session. */
export default createDemoServer;
