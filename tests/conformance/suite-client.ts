/** The client that the official conformance suite drives: an official client of `CLIENT_LINE` on the resumable transport. */
import process from 'node:process';
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { ResumableTransport } from '@throughline/client';

/** Tools by scenario; the suite gives the name of the scenario. */
const CALLS: Readonly<Record<string, { readonly name: string; readonly arguments: Record<string, unknown> }>> = {
  tools_call: { name: 'add_numbers', arguments: { a: 5, b: 3 } },
  'elicitation-sep1034-client-defaults': { name: 'test_client_elicitation_defaults', arguments: {} },
  'sse-retry': { name: 'test_reconnection', arguments: {} },
};

const CAPABILITIES = { elicitation: { form: { applyDefaults: true } } };
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
// Its server has neither epoch nor numbers: under strict its stream would not be resumed, but begun anew.
const transport = new ResumableTransport(process.argv.at(-1) ?? '', { policy: 'compatible' });
const call = CALLS[scenario];

if (process.env['CLIENT_LINE'] === 'v1') {
  const client = new ClientV1({ name: 'conformance-v1', version: '1.0.0' }, { capabilities: CAPABILITIES });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: {} }));
  await client.connect(transport);
  await client.listTools();
  if (call !== undefined) await client.callTool(call);
  await client.close();
} else {
  const client = new ClientV2({ name: 'conformance-v2', version: '1.0.0' }, { capabilities: CAPABILITIES });
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
  await client.connect(transport);
  await client.listTools();
  if (call !== undefined) await client.callTool(call);
  await client.close();
}
