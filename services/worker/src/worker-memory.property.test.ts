/** A conversation whose owner goes at any instant: what the client hears in all is what it would have heard. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonRpcMessage } from '@throughline/protocol';
import { errorOf } from './testing/messages.ts';
import type { ScriptStep } from './testing/scripted-host.ts';
import { openBench } from './testing/worker-bench.ts';
import type { WorkerChoice } from './testing/worker-bench.ts';

const QUICK: WorkerChoice = { config: { heartbeatMs: 100, deadAfterMs: 400, drainMs: 50, checkpointMs: 200 } };
const TICK_MS = 5;
const LIMIT_MS = 60_000;

/** With no time to think it takes about 300 ms. */
const SCRIPT: readonly ScriptStep[] = [
  { progress: 1 },
  { ms: 100, log: 'begin' },
  { ask: 'name?' },
  { ms: 50, progress: 2 },
  { ask: 'what?', method: 'sampling/createMessage' },
  { ask: 'age?' },
  { ms: 100, log: 'end' },
];

interface Plan {
  /** When its owner goes, in milliseconds from the call; `null`: never. */
  readonly goesMs: number | null;
  readonly isPlanned: boolean;
  /** How long the client takes to answer. */
  readonly thinksMs: number;
  /** The tool says something else on each worker. */
  readonly drifts: boolean;
}

interface Heard {
  readonly messages: readonly JsonRpcMessage[];
  /** What it had heard when the owner went; `null`: the call was over, or nobody went. */
  readonly before: number | null;
}

/** All that the client hears of one call. It answers whatever it is asked, once. */
async function converse({ goesMs, isPlanned, thinksMs, drifts }: Plan): Promise<Heard> {
  const bench = await openBench((goesMs ?? 0) + 1);
  try {
    const owner = await bench.start(QUICK);
    await bench.open('k');
    const script = drifts ? [{ drift: true as const }, ...SCRIPT] : SCRIPT;
    const at = await bench.call('k', 1, 'converse', { script });
    const dueMs = new Map<unknown, number>();
    let before: number | null = null;
    for (let ms = 0; bench.stream(`r${at}`).ends === 0; ms += TICK_MS) {
      if (ms > LIMIT_MS) throw new Error('the call did not end');
      if (goesMs !== null && ms >= goesMs && ms < goesMs + TICK_MS) {
        if (isPlanned) await bench.time.run(owner.worker.stop());
        else owner.crash();
        if (bench.stream(`r${at}`).ends === 0) before = bench.stream(`r${at}`).messages.length;
        await bench.start(QUICK);
      }
      for (const message of bench.stream(`r${at}`).messages) {
        if (!('method' in message && 'id' in message)) continue;
        const due = dueMs.get(message.id) ?? ms + thinksMs;
        dueMs.set(message.id, due);
        if (ms < due) continue;
        dueMs.set(message.id, Number.POSITIVE_INFINITY);
        const text = `to ${String(message.params?.['message'])}`;
        await bench.post('k', { jsonrpc: '2.0', id: message.id, result: { text } });
      }
      await bench.time.advance(TICK_MS);
    }
    return { messages: bench.stream(`r${at}`).messages, before };
  } finally {
    await bench.dispose();
  }
}

const shape = (message: JsonRpcMessage): unknown =>
  'method' in message ? [message.method, message.params] : [message.result ?? errorOf(message)];

const plan = fc.record({
  goesMs: fc.integer({ min: 0, max: 700 }),
  isPlanned: fc.boolean(),
  thinksMs: fc.constantFrom(0, 50, 1000),
});

describe('a conversation whose owner goes at any instant', () => {
  it('[WRK-MEMORY] [WRK-ATTEMPTS] is told as if nobody had gone, if the tool is deterministic', async () => {
    const undisturbed = await converse({ goesMs: null, isPlanned: false, thinksMs: 0, drifts: false });
    const whole = undisturbed.messages.map(shape);
    expect(whole).toHaveLength(8);
    await fc.assert(
      fc.asyncProperty(plan, async (drawn) => {
        expect((await converse({ ...drawn, drifts: false })).messages.map(shape)).toEqual(whole);
      }),
      { numRuns: 60 },
    );
  }, 120_000);

  it('[WRK-MEMORY-DIFFERS] or is told up to there, withdrawn and lost, if it is not', async () => {
    await fc.assert(
      fc.asyncProperty(plan, async (drawn) => {
        const { messages, before } = await converse({ ...drawn, drifts: true });
        // It was over by then, or nothing had been said.
        if (before === null || before === 0) return;
        const rest = messages.slice(before).map((each) => ('method' in each ? each.method : errorOf(each)));
        const lost = { code: 'OWNER_LOST', mayHaveRun: true };
        // Nothing of the second run is told: what was open is withdrawn, and the call fails.
        expect([[lost], ['notifications/cancelled', lost]]).toContainEqual(rest);
      }),
      { numRuns: 30 },
    );
  }, 120_000);
});
