/** The seven clients, in the order of the table. */
import type { ClientSource } from '../interop-client.ts';
import { goClient, rustClient } from './built.ts';
import { inspectorClient } from './inspector.ts';
import { mcpRemoteClient } from './mcp-remote.ts';
import { pythonClient } from './python.ts';
import { typeScriptClient } from './typescript.ts';

export const CLIENTS: readonly ClientSource[] = [
  typeScriptClient('v1'),
  typeScriptClient('v2'),
  pythonClient,
  goClient,
  rustClient,
  mcpRemoteClient,
  inspectorClient,
];
