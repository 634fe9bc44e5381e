/** `fixture-v2.ts` as a stdio executable. */
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { createFixtureServer } from './fixture-v2.ts';

await createFixtureServer().connect(new StdioServerTransport());
