/** The clients that are run through every fault, for docs/reference/client-faults.md. */
import { readFileSync } from 'node:fs';
import { runClientCheck } from '@throughline/client/testing';
import type {
  CheckedRun,
  ClientCheckOptions,
  ConnectClient,
  Dialect,
  FaultName,
  Verdict,
} from '@throughline/client/testing';
import { connectOfficial } from '../e2e/official-client.ts';
import type { ClientLine } from '../e2e/official-client.ts';
import { connectResumable } from '../e2e/resumable-client.ts';

export interface CheckedClient {
  readonly name: string;
  readonly package: string;
  readonly connect: ConnectClient;
  /** Whether every verdict of it must be right. */
  readonly mustBeRight: boolean;
}

const unmodified =
  (line: ClientLine): ConnectClient =>
  async (url, reports) => {
    const client = await connectOfficial(line, { url, onLog: reports.event });
    return { callTool: (name, args) => client.callTool(name, args), close: () => client[Symbol.asyncDispose]() };
  };

/** Below the bound of a check, above the keepalives of its server. */
const LIMITS = { initialDelayMs: 20, maxDelayMs: 200, giveUpMs: 2500, silenceMs: 800, quietMs: 1500 } as const;

export const resumable =
  (line: ClientLine, policy: 'strict' | 'compatible'): ConnectClient =>
  async (url, { event, refused, unproven, gaveUp }) => {
    const onUnauthorized = (): Promise<boolean> => {
      gaveUp();
      return Promise.resolve(false);
    };
    const options = { ...LIMITS, policy, onSessionLost: refused, onUnproven: unproven, onUnauthorized };
    const client = await connectResumable(line, url, options, event);
    return { callTool: (name, args) => client.callTool(name, args), close: () => client[Symbol.asyncDispose]() };
  };

export const CHECKED_CLIENTS: readonly CheckedClient[] = [
  { name: 'official v1', package: '@modelcontextprotocol/sdk', connect: unmodified('v1'), mustBeRight: false },
  { name: 'official v2', package: '@modelcontextprotocol/client', connect: unmodified('v2'), mustBeRight: false },
  {
    name: 'ResumableTransport, strict',
    package: '@throughline/client',
    connect: resumable('v1', 'strict'),
    mustBeRight: true,
  },
  {
    name: 'ResumableTransport, compatible',
    package: '@throughline/client',
    connect: resumable('v2', 'compatible'),
    mustBeRight: true,
  },
];

/** What a client made of each fault. */
export type Verdicts = Readonly<Record<FaultName, Readonly<Record<Dialect, Verdict>>>>;

export interface RecordedClient {
  readonly name: string;
  readonly package: string;
  readonly version: string;
  readonly verdicts: Verdicts;
}

export const RECORD_FILE = new URL('recorded-clients.json', import.meta.url);

export function readRecord(): readonly RecordedClient[] {
  return JSON.parse(readFileSync(RECORD_FILE, 'utf8')) as readonly RecordedClient[];
}

export function versionOf(name: string): string {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

const OPTIONS: ClientCheckOptions = { boundMs: 3000, atOnce: 8 };
/** On a busy machine a client that would have come to an end looks like one that hangs. */
const SECOND_LOOK: ClientCheckOptions = { boundMs: 10_000, atOnce: 4 };

/** Runs a client through all faults; those that were not met or that `isDoubtful` a second time, with more time. */
export async function checkClient(
  { connect }: Pick<CheckedClient, 'connect'>,
  isDoubtful: (run: CheckedRun) => boolean,
  where: Pick<ClientCheckOptions, 'stream'> = {},
): Promise<readonly CheckedRun[]> {
  const { runs } = await runClientCheck(connect, { ...OPTIONS, ...where });
  const again = runs.filter((run) => !run.wasShown || isDoubtful(run));
  if (again.length === 0) return runs;
  const faults = [...new Set(again.map(({ fault }) => fault))];
  const dialects = [...new Set(again.map(({ dialect }) => dialect))];
  const second = await runClientCheck(connect, { ...SECOND_LOOK, ...where, faults, dialects });
  const isSame = (a: CheckedRun, b: CheckedRun): boolean => a.fault === b.fault && a.dialect === b.dialect;
  return runs.map((run) => (again.includes(run) ? (second.runs.find((other) => isSame(run, other)) ?? run) : run));
}

export function verdictsOf(runs: readonly CheckedRun[]): Verdicts {
  const verdicts: Partial<Record<FaultName, Partial<Record<Dialect, Verdict>>>> = {};
  for (const { fault, dialect, verdict } of runs) (verdicts[fault] ??= {})[dialect] = verdict;
  return verdicts as Verdicts;
}
