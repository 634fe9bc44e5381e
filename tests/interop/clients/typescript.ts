/** The official TypeScript clients, as this project has them. */
import { readFileSync } from 'node:fs';
import { connectOfficial } from '../../e2e/official-client.ts';
import type { ClientLine } from '../../e2e/official-client.ts';
import type { ClientSource } from '../interop-client.ts';

const CALL_MS = 120_000;
const PACKAGES: Readonly<Record<ClientLine, string>> = { v1: 'sdk', v2: 'client' };

export function typeScriptClient(line: ClientLine): ClientSource {
  const name = `TypeScript ${line}`;
  return {
    name,
    prepare: () =>
      Promise.resolve({
        name,
        version: versionOf(PACKAGES[line]),
        reportsProgress: true,
        async connect(url) {
          const client = await connectOfficial(line, { url });
          return {
            callTool: (tool, args, onProgress) =>
              client.callTool(tool, args, { timeoutMs: CALL_MS, ...(onProgress === undefined ? {} : { onProgress }) }),
            [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
          };
        },
      }),
  };
}

function versionOf(name: string): string {
  const file = new URL(`../../../node_modules/@modelcontextprotocol/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
