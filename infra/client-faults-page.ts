/** docs/reference/client-faults.md: the table of faults, and what clients made of them when they were recorded. */
import { readFileSync } from 'node:fs';
import { DIALECTS, FAULT_NAMES, FAULT_TABLE, rightVerdicts } from '@throughline/client/testing';
import type { FaultName, FaultRow, Verdict } from '@throughline/client/testing';
import { readRecord } from '../tests/conformance/checked-clients.ts';
import type { RecordedClient } from '../tests/conformance/checked-clients.ts';

const VERDICTS: Readonly<Record<Verdict, string>> = {
  exact: 'every event once, in order and unaltered, and the true result',
  refused: 'the client said that continuity is lost, and had delivered nothing false',
  failed: 'the call ended in another error; nothing false was delivered',
  unproven: 'something false was delivered, but the client had said that it cannot prove what it delivers',
  fooled: 'something false was delivered, or something skipped, in silence',
  hasty: 'right, but the client came back before the time that the server had set',
  'ran-twice': 'the call was run a second time',
  hangs: 'neither a result nor an error within the bound of the check (3 s, and 10 s at a second look)',
};

const CLASSES = {
  harmless: 'A correct client does not notice, or mends it unseen.',
  'transport-error':
    'A correct client tries again with the same cursor, and tells an error when its time is over or there is nothing to try.',
  'must-be-refused':
    'Nothing of it may be delivered, the cursor must not be used again, and the application hears it. Most look like a healthy `200`.',
} as const;

const EXAMPLE = new URL('../tests/conformance/check-a-client.ts', import.meta.url);

export function renderClientFaultsPage(): string {
  const records = readRecord();
  return [
    '# Client faults',
    '',
    'What a server, or something before it, can do to a client of MCP over Streamable HTTP, and what clients make of it. `startFaultyServer` of `@throughline/client/testing` does each of these, exactly one at a time and at a scripted moment, and is honest otherwise; `runClientCheck` runs any client through all of them.',
    '',
    'This program checks the official client v1; to check yours, replace how it connects. A client that can tell that it refuses a stream, or cannot prove it, says so by `reports.refused()` and `reports.unproven()`.',
    '',
    '```ts',
    readFileSync(EXAMPLE, 'utf8').trim(),
    '```',
    '',
    '## What clients make of them',
    '',
    'Each client calls the tool `count`, whose stream has six log messages and a result; the fault comes after three. Where the three ways to number events differ, a cell has three verdicts: `throughline` (number, chain and epoch can be checked), `numbered` (consecutive integers and an epoch header), `opaque` (as the SDK numbers). In bold what a client should not do. A test runs the clients and compares.',
    '',
    `| fault | ${records.map(({ name, version }) => `${name} (${version})`).join(' | ')} |`,
    `| --- |${' --- |'.repeat(records.length)}`,
    ...FAULT_NAMES.map((fault) => `| ${fault} | ${records.map((client) => cell(client, fault)).join(' | ')} |`),
    '',
    '| verdict | meaning |',
    '| --- | --- |',
    ...Object.entries(VERDICTS).map(([verdict, meaning]) => `| ${verdict} | ${meaning} |`),
    '',
    'To be fair to the official clients: no revision of MCP knows `X-MCP-Replay-Epoch`, so `epoch-changed` asks for more than they were made for; and where ids prove nothing, `unproven` is as much as anybody can say. Their calls that hang end by their own timeout, 60 s by default.',
    '',
    '## The faults',
    '',
    ...Object.entries(CLASSES).flatMap(([name, meaning]) => [`### ${name}`, '', meaning, '', ...faultsOf(name), '']),
    '`document`: described by the source document on silent divergence of resumed streams. `wild`: seen in servers, proxies and load balancers.',
    '',
  ].join('\n');
}

function faultsOf(name: string): string[] {
  const rows = FAULT_NAMES.map((fault): readonly [FaultName, FaultRow] => [fault, FAULT_TABLE[fault]]);
  return [
    '| fault | what the server does | what a correct client does | can be proved with | source |',
    '| --- | --- | --- | --- | --- |',
    ...rows
      .filter(([, row]) => row.class === name)
      .map(
        ([fault, row]) =>
          `| ${fault} | ${row.does} | ${row.correct} | ${
            row.provable.length === DIALECTS.length ? 'any ids' : row.provable.join(', ')
          } | ${row.source} |`,
      ),
  ];
}

function cell({ verdicts }: RecordedClient, fault: FaultName): string {
  const words = DIALECTS.map((dialect) => {
    const verdict = verdicts[fault][dialect];
    return rightVerdicts(fault, dialect).includes(verdict) ? verdict : `**${verdict}**`;
  });
  return new Set(words).size === 1 ? (words[0] ?? '') : words.join(' / ');
}
