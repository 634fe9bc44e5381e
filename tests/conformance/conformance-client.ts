/**
 * The command that the official conformance suite runs as a client: an official client on the resumable transport. Its
 * arguments are the line of the client and, appended by the suite, the URL of the scenario's server.
 */
import process from 'node:process';
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { ResumableTransport } from '@throughline/client';

/** What the scenarios want to be called, and with what. */
const ARGUMENTS: Readonly<Record<string, Record<string, unknown>>> = {
  add_numbers: { a: 5, b: 3 },
  test_client_elicitation_defaults: {},
  test_reconnection: {},
};
/** The suite's servers have ids of their own kind, which prove nothing. */
const OPTIONS = { policy: 'compatible' } as const;
/** The SDK fills in the defaults of a form that is accepted without content. */
const CAPABILITIES = { elicitation: { form: { applyDefaults: true } } };
const INFO = { name: 'throughline-conformance', version: '1.0.0' };

const [line, url] = process.argv.slice(2);
if (url === undefined || (line !== 'v1' && line !== 'v2'))
  throw new TypeError('usage: conformance-client.ts v1|v2 <url>');
await (line === 'v1' ? runV1(new ResumableTransport(url, OPTIONS)) : runV2(new ResumableTransport(url, OPTIONS)));

async function runV1(transport: ResumableTransport): Promise<void> {
  const client = new ClientV1(INFO, { capabilities: CAPABILITIES });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept' as const, content: {} }));
  await client.connect(transport);
  for (const { name } of (await client.listTools()).tools)
    await client.callTool({ name, arguments: ARGUMENTS[name] ?? {} });
  await client.close();
}

async function runV2(transport: ResumableTransport): Promise<void> {
  const client = new ClientV2(INFO, { capabilities: CAPABILITIES });
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept' as const, content: {} }));
  await client.connect(transport);
  for (const { name } of (await client.listTools()).tools)
    await client.callTool({ name, arguments: ARGUMENTS[name] ?? {} });
  await client.close();
}
