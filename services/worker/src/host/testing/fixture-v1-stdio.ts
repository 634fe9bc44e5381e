/** `fixture-v1.ts` as a stdio executable. */
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { createFixtureServer } from './fixture-v1.ts';

await createFixtureServer().connect(new StdioServerTransport());
