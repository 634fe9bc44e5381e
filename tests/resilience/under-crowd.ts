/** For tests of faults: a world and a crowd, and what must be true after a fault under it. */
import process from 'node:process';
import { expect } from 'vitest';
import { showLogsOnFailure } from '../e2e/show-logs.ts';
import { startStreamingCrowd } from './crowd/streaming-crowd.ts';
import type { StreamingCrowd } from './crowd/streaming-crowd.ts';
import type { Fault } from './faults/fault.ts';
import { describeRun, runFaults } from './faults/run-fault.ts';
import type { FaultRun } from './faults/run-fault.ts';
import type { FaultWorld } from './world/fault-world.ts';

const CLIENTS = 50;
/** The longest fault, the start of brokers, and recovery. */
export const CALL_DEADLINE_MS = 180_000;

export function startCrowd(world: FaultWorld): Promise<StreamingCrowd> {
  const options = { url: world.url, steps: 20, intervalMs: 200, callDeadlineMs: CALL_DEADLINE_MS };
  return startStreamingCrowd(CLIENTS, options, world.runsFile);
}

/** Everybody goes on after the fault, and was told nothing but what it may be told. */
export async function expectSurvived(fault: Fault, world: FaultWorld, crowd: StreamingCrowd): Promise<FaultRun> {
  showLogsOnFailure(world.product);
  const run = await runFaults([fault], { world, crowd });
  process.stdout.write(`${describeRun(run)}\n`);
  expect(run.findings).toEqual([]);
  expect(run.untold).toEqual([]);
  return run;
}
