/**
 * `npm run interop`: seven real clients, two gateways behind HAProxy, a kill in mid-call, a drain, a refusal, a lost
 * session; one table. It fetches what it needs into the user's cache.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { errorStack } from '@throughline/log';
import { findKafka, KAFKA_VERSION } from '@throughline/testkit/kafka';
import { makeFilePlace, makeKafkaPlace } from '@throughline/testkit/processes';
import type { MakeLogPlace } from '@throughline/testkit/processes';
import { format } from 'prettier';
import { describeCommit } from '../../infra/lanes/describe-commit.ts';
import { ROOT } from '../../infra/lanes/run-command.ts';
import { optionsOrExit } from '../../infra/options/read-options.ts';
import { findProxy } from '../../infra/proxies/find-proxy.ts';
import type { ProxyProgram } from '../../infra/proxies/find-proxy.ts';
import { CLIENTS } from './clients/index.ts';
import type { InteropClient, Skipped } from './interop-client.ts';
import { INTEROP } from './interop-options.ts';
import { renderInteropPage } from './interop-page.ts';
import { formatInteropTable, formatInteropTally, isRowRight } from './interop-table.ts';
import type { InteropRow } from './interop-table.ts';
import { startInteropWorld } from './interop-world.ts';
import { STEPS } from './judge.ts';
import type { Seen, Step } from './judge.ts';
import { runStep } from './scenario.ts';
import { startTrial } from './trial.ts';
import type { Trial } from './trial.ts';

const PAGE = path.join(ROOT, 'docs', 'reference', 'interop.md');
const SHOWN_LOGS = 8000;

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** One after the other: compilers take all there is. */
async function prepare(wanted: readonly string[]): Promise<readonly (InteropClient | Skipped)[]> {
  const found: (InteropClient | Skipped)[] = [];
  for (const source of CLIENTS.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    const client = await source.prepare({ mayFetch: true });
    say('skipped' in client ? `${client.name} is skipped: ${client.skipped}` : `${client.name} ${client.version}`);
    found.push(client);
  }
  return found;
}

async function run(clients: readonly InteropClient[], log: MakeLogPlace, haproxy: ProxyProgram): Promise<InteropRow[]> {
  await using world = await startInteropWorld(log, haproxy);
  await using trials = new AsyncDisposableStack();
  const running: Trial[] = [];
  for (const client of clients) running.push(trials.use(await startTrial(client, world.url)));
  const seen = new Map<Step, readonly Seen[]>();
  try {
    for (const step of STEPS) {
      say(`${step} …`);
      seen.set(step, await runStep(step, running, world));
    }
  } catch (error) {
    say(world.logs().slice(-SHOWN_LOGS));
    throw error;
  }
  return clients.map(({ name, version }, index) => ({
    ...{ name, version },
    seen: Object.fromEntries(STEPS.map((step) => [step, seen.get(step)?.[index]])) as Record<Step, Seen>,
  }));
}

async function interop(): Promise<boolean> {
  const { log: chosen, client: wanted, report, write } = optionsOrExit(INTEROP, process.argv.slice(2));
  const log = chosen.at(-1) ?? 'kafka';
  const commit = describeCommit();
  const haproxy = await findProxy('haproxy', { mayFetch: true });
  if ('missing' in haproxy) throw new Error(`HAProxy cannot be had: ${haproxy.missing}`);
  const found = await prepare(wanted);
  const clients = found.filter((client): client is InteropClient => !('skipped' in client));
  const kafka = log === 'kafka' ? await findKafka() : null;
  if (kafka?.from === 'none') throw new Error(`there is no Kafka (${kafka.reason}); --log embedded runs without`);
  let ran: readonly InteropRow[];
  try {
    const place = kafka === null ? makeFilePlace : makeKafkaPlace({ brokers: kafka.brokers });
    ran = await run(clients, place, haproxy);
  } finally {
    await kafka?.stop();
  }
  const rows = found.map((client) => ('skipped' in client ? client : ran[clients.indexOf(client)]!));
  say(`\n${formatInteropTable(rows)}\n\n${formatInteropTally(rows)}`);
  if (report !== null) writeFileSync(report, JSON.stringify(rows));
  if (write) {
    const page = renderInteropPage(
      {
        ...{ date: new Date().toISOString().slice(0, 10), commit },
        machine: `${availableParallelism()} cores, ${(totalmem() / 1024 ** 3).toFixed(1)} GiB memory, for everything together`,
        versions: `Node ${process.version}, HAProxy ${haproxy.version}, ${kafka === null ? 'the embedded log' : `Apache Kafka ${KAFKA_VERSION}`}`,
        command: `npm run interop -- ${kafka === null ? '--log embedded ' : ''}--write`,
      },
      rows,
    );
    mkdirSync(path.dirname(PAGE), { recursive: true });
    writeFileSync(PAGE, await format(page, { parser: 'markdown', printWidth: 120, singleQuote: true }));
    say(`\nwritten: ${path.relative(ROOT, PAGE)}`);
  }
  return rows.every(isRowRight);
}

try {
  process.exitCode = (await interop()) ? 0 : 1;
} catch (error) {
  say(errorStack(error));
  process.exitCode = 1;
}
// Clients keep sockets and timers.
process.exit();
