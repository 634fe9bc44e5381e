/** Faults under a crowd: what came of each, with the time until everybody was served again. */
import { errorText } from '@throughline/log';
import { within } from '@throughline/testkit/processes';
import { spreadOf } from '../crowd/recovery.ts';
import type { Spread } from '../crowd/recovery.ts';
import type { StreamingCrowd } from '../crowd/streaming-crowd.ts';
import type { Counts, Finding } from '../crowd/tally.ts';
import type { FaultWorld } from '../world/fault-world.ts';
import type { Fault, Told } from './fault.ts';
import { holdWith } from './fault.ts';

export interface FaultRun {
  /** Of all that happened at once. */
  readonly name: string;
  /** What was counted from the beginning of the fault until everybody was served again. */
  readonly counts: Counts;
  /** What was found broken meanwhile. */
  readonly findings: readonly Finding[];
  /** What clients were told and must not have been told. */
  readonly untold: readonly Told[];
  /** Of each client, in milliseconds. */
  readonly recoveries: readonly number[];
  readonly silence: Spread;
}

/** From the end of a fault on, until everybody is served again; longer is `hung`. */
export const RECOVERY_MS = 90_000;
/** A fault itself, with the start of what it ended. */
const FAULT_MS = 180_000;
/** A client that got so many messages is served. */
const SERVED = 8;

export interface RunFaultOptions {
  readonly world: FaultWorld;
  readonly crowd: StreamingCrowd;
  readonly signal?: AbortSignal;
}

/** Injects all of `faults` at once. A fault that cannot be had is a finding. Rejects when `signal` aborts, or the world cannot be healed. */
export async function runFaults(
  faults: readonly Fault[],
  { world, crowd, signal }: RunFaultOptions,
): Promise<FaultRun> {
  const before = { counts: { ...crowd.counts }, findings: crowd.findings() };
  const watch = crowd.watch();
  let endedAt = 0;
  const over = (): void => {
    endedAt = performance.now();
  };
  const late: Finding[] = [];
  try {
    const all = Promise.all(
      faults.map(async (fault) => {
        let isOver = false;
        await fault.run({
          ...{ world, hold: holdWith(signal) },
          over() {
            isOver = true;
            over();
          },
        });
        if (!isOver) over();
      }),
    );
    await within(faults.map(({ name }) => name).join(' + '), all, FAULT_MS);
  } catch (error) {
    signal?.throwIfAborted();
    late.push({ kind: 'wrong', what: `the fault itself: ${errorText(error)}` });
    over();
  }
  await world.heal();
  signal?.throwIfAborted();
  // A client that is in the middle of something old is not served yet: so many that it has come around.
  await crowd.progress(SERVED, RECOVERY_MS).catch((error: unknown) => {
    late.push({ kind: 'hung', what: errorText(error) });
  });
  const recoveries = watch.recoveries(endedAt);
  const silence = watch.silence();
  watch.stop();
  const counts = difference(crowd.counts, before.counts);
  const allowed = new Set(faults.flatMap(({ mayTell }) => mayTell));
  const untold: Told[] = [];
  if (counts.ownerLost > 0 && !allowed.has('owner lost')) untold.push('owner lost');
  if (counts.sessionsEnded > 0 && !allowed.has('session over')) untold.push('session over');
  return {
    name: faults.map(({ name }) => name).join(' + '),
    ...{ counts, untold, recoveries, silence },
    findings: [...newOf(crowd.findings(), before.findings), ...late],
  };
}

/** Those of `now` that were not there before: more of them are found anywhere in the list. */
export function newOf(now: readonly Finding[], before: readonly Finding[]): Finding[] {
  const known = new Set(before.map(({ kind, what }) => `${kind} ${what}`));
  return now.filter(({ kind, what }) => !known.has(`${kind} ${what}`));
}

function difference(now: Counts, before: Counts): Counts {
  const minus = (field: keyof Counts): number => now[field] - before[field];
  return {
    ...{ calls: minus('calls'), refused: minus('refused'), mayHaveRun: minus('mayHaveRun') },
    ...{ ownerLost: minus('ownerLost'), unanswered: minus('unanswered'), sessionsEnded: minus('sessionsEnded') },
    ...{ dropped: minus('dropped'), relistened: minus('relistened'), longestHeadMs: now.longestHeadMs },
  };
}

export function describeRun({ name, counts, findings, recoveries, silence }: FaultRun): string {
  const { p50Ms, worstMs } = spreadOf(recoveries);
  const broken = findings.length === 0 ? '' : `; ${findings.length} BROKEN: ${findings[0]?.kind} ${findings[0]?.what}`;
  return (
    `${name}: recovered after p50 ${p50Ms} ms, worst ${worstMs} ms; longest silence p50 ${silence.p50Ms} ms, worst ${silence.worstMs} ms; ` +
    `${counts.calls} calls, ${counts.ownerLost} lost their owner, ${counts.unanswered} unanswered, ${counts.sessionsEnded} sessions ended, ` +
    `${counts.refused} answers 503, ${counts.mayHaveRun} answers 504, ${counts.dropped} connections dropped${broken}`
  );
}
