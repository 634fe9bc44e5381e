/** Writes what the clients make of every fault: `node --conditions=@throughline/source tests/conformance/record-clients.ts`. */
import { writeFileSync } from 'node:fs';
import { format } from 'prettier';
import { checkClient, CHECKED_CLIENTS, RECORD_FILE, verdictsOf, versionOf } from './checked-clients.ts';
import type { RecordedClient } from './checked-clients.ts';

const records: RecordedClient[] = [];
for (const client of CHECKED_CLIENTS) {
  const verdicts = verdictsOf(await checkClient(client, ({ verdict }) => verdict === 'hangs'));
  records.push({ name: client.name, package: client.package, version: versionOf(client.package), verdicts });
}
writeFileSync(RECORD_FILE, await format(JSON.stringify(records), { parser: 'json', printWidth: 120 }));
