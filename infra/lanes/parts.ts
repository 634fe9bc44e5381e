/** The parts that lanes are made of: the gates, and test folders run by vitest. */
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { ROOT, runCommand } from './run-command.ts';
import type { PartResult, Tally } from './tally.ts';
import { readVitestReport } from './vitest-report.ts';

export interface LaneOptions {
  /** Longest time of one part. */
  readonly partDeadlineMs: number;
  readonly environment: Readonly<Record<string, string>>;
}

export interface Part {
  readonly name: string;
  run(options: LaneOptions): Promise<Tally & { readonly note?: string }>;
}

const bin = (name: string): string => path.join(ROOT, 'node_modules', '.bin', name);

/** Each gate counts as one test. */
function gates(): (readonly [name: string, command: readonly string[]])[] {
  const folders = ['libs', 'services', 'infra', 'tests', 'examples'].filter((name) => hasFolder(name));
  return [
    ['prettier', [bin('prettier'), '--check', '--log-level', 'warn', '.']],
    ['eslint', [bin('eslint'), '.']],
    ['types', [bin('tsc'), '-p', 'tsconfig.json']],
    ['dependencies', [bin('depcruise'), '--config', '.dependency-cruiser.cjs', ...folders]],
    ['unused', [bin('knip'), '--no-config-hints']],
    ['spec', [process.execPath, 'infra/gates/spec-gate.ts']],
    ['security', [process.execPath, 'infra/gates/security.ts']],
  ];
}

export const checkPart: Part = {
  name: 'check',
  async run(options) {
    const failed: string[] = [];
    const all = gates();
    for (const [name, command] of all) {
      process.stdout.write(`\n— ${name}\n`);
      const code = await runCommand(command, { deadlineMs: options.partDeadlineMs });
      process.stdout.write(`${name}: ${code === 0 ? 'passed' : `failed with code ${code}`}\n`);
      if (code !== 0) failed.push(name);
    }
    const tally = { passed: all.length - failed.length, failed: failed.length, skipped: 0 };
    return failed.length === 0 ? tally : { ...tally, note: `failed: ${failed.join(', ')}` };
  },
};

/** Tests beside the code. */
const unitPart = vitestPart('unit', ['--exclude', 'tests/**', '--exclude', 'examples/**']);

/** Tests of every folder that need a broker, or several; skipped, and counted as such, where there is none. */
const kafkaPart = vitestPart('kafka', ['--config', 'vitest.kafka.config.ts']);
/** The oldest version that is promised, as a process, whatever containers there are. */
const olderKafkaPart = vitestPart('kafka-3.9', ['--config', 'vitest.kafka.config.ts', 'libs/log'], {
  environment: { KAFKA_VERSION: '3.9.1', REQUIRE_CONTAINERS: '' },
});
const clusterPart = vitestPart('cluster', ['--config', 'vitest.cluster.config.ts'], { mayAllBeSkipped: true });

/** The end-to-end tests that run on the embedded log as well: a selection, all of them with DEEP=1. */
const kafkaE2ePart = vitestPart('kafka-e2e', ['--config', 'vitest.kafka-e2e.config.ts'], { mayAllBeSkipped: true });

/** The order in which faults are found soonest; other folders follow by name. */
const TEST_FOLDERS = ['simulation', 'conformance', 'e2e', 'resilience'];

/** `isDeep`: with what takes too long for every change. */
export function laneParts(isDeep: boolean): Part[] {
  const found = hasFolder('tests') ? readdirSync(path.join(ROOT, 'tests'), { withFileTypes: true }) : [];
  const others = found.filter((entry) => entry.isDirectory() && !TEST_FOLDERS.includes(entry.name));
  const folders = [...TEST_FOLDERS, ...others.map(({ name }) => name).sort()].map((name) => `tests/${name}`);
  const onBrokers = [kafkaPart, ...(isDeep ? [olderKafkaPart] : []), clusterPart, kafkaE2ePart];
  return [checkPart, unitPart, ...onBrokers, ...[...folders, 'examples'].map((folder) => folderPart(folder))];
}

/** A folder without any test that runs without brokers is left out, and said so; one whose tests do not run fails. */
function folderPart(folder: string): Part {
  const part = vitestPart(folder.replace('tests/', ''), [`${folder}/`]);
  return {
    name: part.name,
    async run(options) {
      const files = globSync(`${folder}/**/*.test.ts`, { cwd: ROOT });
      if (files.every((file) => /\.(kafka|cluster)\.test\.ts$/.test(file)))
        return { passed: 0, failed: 0, skipped: 0, note: 'has no tests without brokers' };
      return await part.run(options);
    },
  };
}

interface OwnOptions {
  /** Over that of the lane. */
  readonly environment?: Readonly<Record<string, string>>;
  /** They need what a machine may not have. */
  readonly mayAllBeSkipped?: boolean;
}

function vitestPart(name: string, selection: readonly string[], own: OwnOptions = {}): Part {
  return {
    name,
    async run({ partDeadlineMs, environment }) {
      const folder = mkdtempSync(path.join(tmpdir(), 'throughline-lane-'));
      const file = path.join(folder, 'report.json');
      try {
        const code = await runCommand(
          [bin('vitest'), 'run', ...selection, '--reporter=default', '--reporter=json', `--outputFile.json=${file}`],
          { deadlineMs: partDeadlineMs, environment: { ...environment, ...own.environment } },
        );
        const { tally, note } = readVitestReport(readIfThere(file), code, own.mayAllBeSkipped);
        const said = code === 124 ? `ended by its deadline of ${partDeadlineMs / 60_000} minutes` : note;
        return said === undefined ? tally : { ...tally, note: said };
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}

/** Runs the parts one after the other, also after a failure: a lane shows everything that is wrong. */
export async function runParts(parts: readonly Part[], options: LaneOptions): Promise<PartResult[]> {
  const results: PartResult[] = [];
  for (const part of parts) {
    process.stdout.write(`\n=== ${part.name}\n`);
    const started = performance.now();
    const outcome = await part.run(options);
    results.push({ name: part.name, ms: performance.now() - started, ...outcome });
  }
  return results;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function hasFolder(name: string): boolean {
  return readdirSync(ROOT).includes(name);
}
