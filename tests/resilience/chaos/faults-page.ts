/** `docs/reference/faults.md`: the dated table, what was measured on what, and what each fault does. */
import { execFileSync } from 'node:child_process';
import { availableParallelism, totalmem } from 'node:os';
import process from 'node:process';
import { KAFKA_VERSION } from '@throughline/testkit/kafka';
import type { Fault } from '../faults/fault.ts';
import type { ChaosOptions } from './chaos-options.ts';
import type { FaultRow } from './fault-table.ts';
import { renderFaultTable } from './fault-table.ts';

export interface RunFacts {
  /** YYYY-MM-DD. */
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
  readonly versions: string;
  readonly command: string;
  readonly clients: number;
}

export interface FaultsPage {
  readonly facts: RunFacts;
  readonly rows: readonly FaultRow[];
  readonly faults: readonly Fault[];
  readonly skipped: readonly { readonly fault: Fault; readonly why: string }[];
  readonly calls: number;
}

export function describeRunOf(root: string, brokers: 'container' | 'local', options: ChaosOptions): RunFacts {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  let commit = 'unknown (no git repository)';
  try {
    commit = git('rev-parse', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' with uncommitted changes');
  } catch {
    // An archive has none.
  }
  const { each, minutes, seed, clients, fault } = options;
  const named = fault.map((name) => ` --fault '${name}'`).join('');
  return {
    date: new Date().toISOString().slice(0, 10),
    commit,
    machine: `${availableParallelism()} cores, ${(totalmem() / 1024 ** 3).toFixed(1)} GiB memory, for brokers, product and clients together`,
    versions: `Node ${process.version}, Apache Kafka ${KAFKA_VERSION} ${brokers === 'container' ? 'in containers' : 'as processes'}`,
    command: `npm run chaos -- ${each ? '--each' : `--minutes ${minutes}`} --seed ${seed}${named}`,
    clients,
  };
}

export function renderFaultsPage({ facts, rows, faults, skipped, calls }: FaultsPage): string {
  const did = new Set(rows.flatMap(({ fault }) => fault.split(' + ')));
  return [
    '# Faults',
    '',
    `What ${facts.clients} clients got while faults were injected under them: three brokers (replication 3, \`min.insync.replicas\` 2), two gateways behind a balancer without stickiness, two workers whose server has \`onOwnerLoss: restore\`, options as they are by default but for \`--keep-alive 1s\`. \`${facts.command} --write\` wrote this page.`,
    '',
    `- Date: ${facts.date}`,
    `- Commit: ${facts.commit}`,
    `- Machine: ${facts.machine}`,
    `- Versions: ${facts.versions}`,
    `- Calls in all: ${calls}`,
    '',
    renderFaultTable(rows),
    '',
    'Every client calls a tool with effects that reports 20 steps, one each 200 ms, then one that says something on the standalone stream, again and again. **Lost** and **repeated** are messages, by `seq`, chain and step; **run twice** are calls that left two lines in a file that the tool writes; **hung** are calls without a result or an error within 3 minutes, and clients that were not served again within 90 s; **wrong** is everything else that was not promised, such as an error that says what is not so. **Refused** is the right outcome where a fault takes away what would be needed: calls that were told `OWNER_LOST` with `mayHaveRun`, calls that got no answer while they could be sent again, and sessions that were told that they are over. **Time to recover** is from the end of the fault (for a kill from the kill on) to the end of the last silence of a second or more, of each client.',
    '',
    '## What each fault does',
    '',
    ...faults.filter(({ name }) => did.has(name)).map(({ name, does }) => `- **${name}**: ${does}`),
    ...(skipped.length === 0
      ? []
      : ['', 'Skipped in this run:', '', ...skipped.map(({ fault, why }) => `- **${fault.name}**: ${why}`)]),
    '',
  ].join('\n');
}
