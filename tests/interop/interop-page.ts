/** docs/reference/interop.md: what each client did when it was run, and what is done for it. Pure. */
import { STEPS } from './judge.ts';
import { DOES } from './interop-table.ts';
import type { InteropRow } from './interop-table.ts';

export interface InteropFacts {
  /** YYYY-MM-DD. */
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
  readonly versions: string;
  readonly command: string;
}

/** What is done for clients as they are, each with the rule that holds it. */
const FOR_THEM: readonly (readonly [client: string, does: string, done: string])[] = [
  [
    'TypeScript, Python',
    'come back twice after a broken connection, then give up; a time that the server names replaces their own',
    'each stream that can be resumed begins with a `retry` of 0.5 s and jitter, so both tries fall into a failover (GW-STREAM)',
  ],
  [
    'TypeScript',
    'forget their cursor if a resumed stream ends without an id',
    'resumed streams begin with an id, too: that of the client, then the place that the gateway has read to',
  ],
  [
    'Python',
    'if a stream that it had resumed breaks, resumes from the cursor of its former resume, and is given steps again',
    'it gets what it asks for, exactly (LIM-AGAIN): a gateway cannot know what it had seen. Planned stops end streams in order, so that it keeps its cursor',
  ],
  [
    'Go',
    'gives up after five resumes whose id did not advance, and with it the whole connection',
    'the same second id moves ahead with the log',
  ],
  [
    'TypeScript before 2025-11-25 and others of that time',
    'take an event without data for a message that cannot be read',
    'streams begin with an id only from revision 2025-11-25 on; older clients get ids on messages alone (GW-STREAM)',
  ],
  [
    'TypeScript',
    'hang until their own timeout when the resume of a call is refused with an HTTP status',
    'a refusal is a 200 with a JSON-RPC error for the pending call, at once (E2E-REFUSED)',
  ],
  [
    'TypeScript v1',
    'resumes a stream once more after an error, and without end after an empty 200',
    'the id of the refusal ends with `end`, and its resume gets 204 (E2E-REFUSED-WIRE)',
  ],
  [
    'Python, Go',
    'ask `server/discover` first, which came after the revisions that are served',
    'it is answered as a server of those revisions answers, and they go on with `initialize`',
  ],
  [
    'all but Rust and mcp-remote',
    'tell the application that the session is gone (404), and leave it to it to begin another; these two begin one by themselves',
    'sessions outlive every process, so that they meet it only when it is true',
  ],
];

export function renderInteropPage(facts: InteropFacts, rows: readonly InteropRow[]): string {
  const table = rows.flatMap((row) =>
    'skipped' in row
      ? []
      : [
          [
            row.name,
            row.version,
            ...STEPS.map((step) => (row.seen[step].isRight ? '' : '**wrong**: ') + row.seen[step].text),
          ],
        ],
  );
  const skipped = rows.flatMap((row) => ('skipped' in row ? [`- **${row.name}** was skipped: ${row.skipped}`] : []));
  return [
    '# Interoperability',
    '',
    `What real clients do behind HAProxy without stickiness (\`infra/proxies/haproxy.cfg\`), with two gateways and a worker, options as they are by default. \`${facts.command}\` wrote this page; the deep lane runs the same, and every change is tried with the clients that are there, without kills and planned stops (INTEROP-QUICK).`,
    '',
    `- Date: ${facts.date}`,
    `- Commit: ${facts.commit}`,
    `- Machine: ${facts.machine}`,
    `- Versions: ${facts.versions}`,
    '',
    rowOf(['client', 'version', ...STEPS]),
    rowOf(['client', 'version', ...STEPS].map(() => '---')),
    ...table.map(rowOf),
    '',
    ...(skipped.length === 0 ? [] : [...skipped, '']),
    'In each step a client',
    '',
    ...STEPS.map((step) => `- **${step}**: ${DOES[step]}`),
    '',
    '## What clients do, and what is done for them',
    '',
    rowOf(['client', 'what it does', 'what is done for it']),
    rowOf(['---', '---', '---']),
    ...FOR_THEM.map(rowOf),
    '',
    '[Proxies](../operations/proxies.md) says what they see of a load balancer.',
    '',
  ].join('\n');
}

function rowOf(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
