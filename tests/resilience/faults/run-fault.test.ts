import { describe, expect, it } from 'vitest';
import type { StreamingCrowd } from '../crowd/streaming-crowd.ts';
import { noCounts } from '../crowd/tally.ts';
import type { Counts, Finding } from '../crowd/tally.ts';
import type { FaultWorld } from '../world/fault-world.ts';
import type { Fault } from './fault.ts';
import { describeRun, runFaults } from './run-fault.ts';

function makeStage(progress: StreamingCrowd['progress'] = () => Promise.resolve()) {
  const counts: Counts = { ...noCounts(), calls: 100, ownerLost: 7 };
  const findings: Finding[] = [{ kind: 'lost', what: 'before' }];
  const healed: number[] = [];
  const crowd: StreamingCrowd = {
    ...{ counts, clients: [], progress, findings: () => [...findings], finish: () => Promise.resolve() },
    watch: () => ({ silence: () => ({ p50Ms: 1, worstMs: 2 }), recoveries: () => [3, 4], stop: () => undefined }),
  };
  const world = {
    heal: () => {
      healed.push(counts.calls);
      return Promise.resolve();
    },
  } as unknown as FaultWorld;
  return { counts, findings, healed, crowd, world };
}

describe('runFaults', () => {
  it('[FLT-TABLE] counts what happened around the fault, and nothing from before; the world is healed after it', async () => {
    const { counts, findings, healed, crowd, world } = makeStage();
    const fault: Fault = {
      ...{ name: 'a', does: '', mayTell: ['owner lost'] },
      run() {
        counts.calls += 5;
        counts.ownerLost += 2;
        // What calls found comes before what their runs left.
        findings.unshift({ kind: 'repeated', what: 'now' });
        return Promise.resolve();
      },
    };
    const run = await runFaults([fault], { world, crowd });
    expect(run).toMatchObject({
      ...{ name: 'a', untold: [], recoveries: [3, 4] },
      ...{ counts: { calls: 5, ownerLost: 2, sessionsEnded: 0 }, findings: [{ kind: 'repeated', what: 'now' }] },
    });
    expect(healed).toEqual([105]);
    expect(describeRun(run)).toContain('1 BROKEN: repeated now');
  });

  it('[FLT-TOLD] what clients are told and no fault of the run may tell is named; of two at once either may', async () => {
    const { counts, crowd, world } = makeStage();
    const tells: Fault = {
      ...{ name: 'a', does: '', mayTell: [] },
      run() {
        counts.ownerLost++;
        counts.sessionsEnded++;
        return Promise.resolve();
      },
    };
    const other: Fault = { name: 'b', does: '', mayTell: ['session over'], run: () => Promise.resolve() };
    expect((await runFaults([tells], { world, crowd })).untold).toEqual(['owner lost', 'session over']);
    const both = await runFaults([tells, other], { world, crowd });
    expect([both.name, both.untold]).toEqual(['a + b', ['owner lost']]);
  });

  it('[FLT-KEPT] clients that are not served again hang, and a fault that fails is a finding', async () => {
    const { healed, crowd, world } = makeStage(() => Promise.reject(new Error('2 of 50 clients')));
    const fails: Fault = { name: 'a', does: '', mayTell: [], run: () => Promise.reject(new Error('no such broker')) };
    const { findings } = await runFaults([fails], { world, crowd });
    expect(findings).toEqual([
      { kind: 'wrong', what: 'the fault itself: no such broker' },
      { kind: 'hung', what: '2 of 50 clients' },
    ]);
    expect(healed).toHaveLength(1);
  });
});
