/**
 * `npm run chaos -- --minutes 5`: three brokers, two gateways, two workers and 50 clients; faults at random; the table
 * of what came of each. Exit code 1 if a message was lost or repeated, a call ran twice or hung, or anything else broke.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { errorStack, errorText } from '@throughline/log';
import { createSeededRandom } from '@throughline/testkit';
import { optionsOrExit } from '../../../infra/options/read-options.ts';
import { startStreamingCrowd } from '../crowd/streaming-crowd.ts';
import type { StreamingCrowd } from '../crowd/streaming-crowd.ts';
import { FAULTS } from '../faults/catalogue.ts';
import type { Fault } from '../faults/fault.ts';
import { describeRun, newOf, runFaults } from '../faults/run-fault.ts';
import type { FaultRun } from '../faults/run-fault.ts';
import { startFaultWorld } from '../world/fault-world.ts';
import type { FaultWorld } from '../world/fault-world.ts';
import { CHAOS } from './chaos-options.ts';
import type { ChaosOptions } from './chaos-options.ts';
import { drawFaults } from './draw-faults.ts';
import { isKept, renderFaultTable } from './fault-table.ts';
import { describeRunOf, renderFaultsPage } from './faults-page.ts';
import type { RunFacts } from './faults-page.ts';
import { foundLater, rowsOf } from './rows.ts';

const ROOT = path.resolve(fileURLToPath(new URL('../../..', import.meta.url)));
const PAGE = path.join(ROOT, 'docs', 'reference', 'faults.md');
const CALL_DEADLINE_MS = 180_000;
const BREATH_MS = 60_000;

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

async function chaos(options: ChaosOptions, signal: AbortSignal): Promise<boolean> {
  say(`seed ${options.seed}; starting three brokers, two gateways, two workers …`);
  const world = await startFaultWorld({ seed: options.seed });
  // At once, whatever is under way: what runs fails by it, and is not looked at any more.
  const stopping = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error);
    });
  });
  const runs: FaultRun[] = [];
  signal.addEventListener('abort', () => {
    if (runs.length > 0) say(`\nUntil then:\n\n${renderFaultTable(rowsOf(runs))}`);
  });
  try {
    return await Promise.race([stopping, injectAll(world, options, runs, signal)]);
  } finally {
    await world.stop();
  }
}

/** @param runs takes what came of each fault. */
async function injectAll(
  world: FaultWorld,
  options: ChaosOptions,
  runs: FaultRun[],
  signal: AbortSignal,
): Promise<boolean> {
  const wanted = FAULTS.filter(({ name }) => options.fault.length === 0 || options.fault.includes(name));
  const skipped = wanted.flatMap((fault) => {
    const why = fault.whyNot?.(world) ?? null;
    return why === null ? [] : [{ fault, why }];
  });
  const possible = wanted.filter((fault) => !skipped.some((each) => each.fault === fault));
  for (const { fault, why } of skipped) say(`skipped: ${fault.name}: ${why}`);
  const startCrowd = (): Promise<StreamingCrowd> =>
    startStreamingCrowd(
      options.clients,
      { url: world.url, steps: 20, intervalMs: 200, callDeadlineMs: CALL_DEADLINE_MS },
      world.runsFile,
    );
  const crowd = await startCrowd();
  // Now: files may change meanwhile.
  const facts = describeRunOf(ROOT, world.kafka.from, options);
  say(`${options.clients} clients stream through ${world.url} on brokers in ${world.kafka.from} form`);
  const random = createSeededRandom(options.seed);
  const until = performance.now() + options.minutes * 60_000;
  const draws: Iterator<readonly Fault[]> = options.each
    ? possible.map((fault) => [fault]).values()
    : drawFaults(possible, random);
  while (options.each || performance.now() < until) {
    const next = draws.next();
    if (next.done === true) break;
    const run = await runFaults(next.value, { world, crowd, signal });
    runs.push(run);
    say(describeRun(run));
    await crowd.progress(10, BREATH_MS).catch(() => undefined);
  }
  await crowd.finish();
  return report({ runs, crowd, skipped, options, facts });
}

interface Report {
  readonly runs: readonly FaultRun[];
  readonly crowd: StreamingCrowd;
  readonly skipped: readonly { readonly fault: Fault; readonly why: string }[];
  readonly options: ChaosOptions;
  readonly facts: RunFacts;
}

/** Resolves with whether every promise was kept. */
function report({ runs, crowd, skipped, options, facts }: Report): boolean {
  // Found in a breath, or when all calls had ended: they belong to a fault before.
  const findings = crowd.findings();
  const later = newOf(
    findings,
    runs.flatMap((run) => run.findings),
  );
  const rows = rowsOf(later.length === 0 ? runs : [...runs, foundLater(later)]);
  say(`\n${renderFaultTable(rows)}\n`);
  for (const { kind, what } of findings) say(`BROKEN: ${kind}: ${what}`);
  for (const { name, untold } of runs) for (const told of untold) say(`BROKEN: ${name}: clients were told: ${told}`);
  const around = runs.reduce((sum, { counts }) => sum + counts.calls, 0);
  say(
    `${crowd.counts.calls} calls in all, ${crowd.counts.calls - around} of them between faults; ${skipped.length} faults skipped; seed ${options.seed}`,
  );
  if (options.write) {
    mkdirSync(path.dirname(PAGE), { recursive: true });
    writeFileSync(PAGE, renderFaultsPage({ facts, rows, faults: FAULTS, skipped, calls: crowd.counts.calls }));
    say(`written: ${path.relative(ROOT, PAGE)}`);
  }
  return rows.every(isKept) && findings.length === 0;
}

const given = optionsOrExit(CHAOS, process.argv.slice(2));
const options = { ...given, seed: given.seed ?? Math.floor(Math.random() * 2 ** 31) };
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    interrupted.abort(new Error(`ended by ${signal}`));
  });
try {
  process.exitCode = (await chaos(options, interrupted.signal)) ? 0 : 1;
} catch (error) {
  const isInterrupted = interrupted.signal.aborted;
  process.stderr.write(`${isInterrupted ? errorText(error) : errorStack(error)}\n`);
  process.exitCode = isInterrupted ? 130 : 1;
}
// Clients of a world that is gone may still wait for it.
process.exit();
