/** Calls that had spoken when their owner died: they are run again with the memory of what they said and heard. */
import { afterEach, describe, expect, it } from 'vitest';
import { sleep } from '@throughline/log';
import type { Log } from '@throughline/log';
import type { MemoryLog } from '@throughline/log/memory';
import { encodeText, formatTarget, makeRecord } from '@throughline/protocol';
import type { JsonRpcMessage, Offset, RecordInput } from '@throughline/protocol';
import { errorOf, methodsOf, questionsOf, textOf, withdrawnOf } from './testing/messages.ts';
import type { ScriptStep } from './testing/scripted-host.ts';
import { EVENTS, INBOUND, openBench } from './testing/worker-bench.ts';
import type { Bench, BenchWorker, WorkerChoice } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const QUICK: WorkerChoice = { config: { heartbeatMs: 100, deadAfterMs: 400 } };
const TERMINATE: WorkerChoice = { ...QUICK, onOwnerLoss: 'terminate' };
const ASK = 'elicitation/create';
const WITHDRAWN = 'notifications/cancelled';
const LOG = 'notifications/message';
const PROGRESS = 'notifications/progress';
const LOST = { code: 'OWNER_LOST', mayHaveRun: true };

async function openWith(seed: number, choice: WorkerChoice = QUICK): Promise<BenchWorker> {
  bench = await openBench(seed);
  const worker = await bench.start(choice);
  await bench.open('k');
  return worker;
}
/** A call of an idempotent tool that goes through the script. */
const converse = (script: readonly ScriptStep[], more: object = {}, id = 1): Promise<Offset> =>
  bench.call('k', id, 'converse', { script, ...more });
const told = (label: string): readonly JsonRpcMessage[] => bench.stream(label).messages;
const said = (at: Offset): readonly JsonRpcMessage[] => told(`r${at}`);
const spoken = (at: Offset, count: number): Promise<void> => bench.until(() => said(at).length >= count);
const questions = (at: Offset | 's'): readonly unknown[] => questionsOf(told(at === 's' ? at : `r${at}`));
const withdrawn = (at: Offset | 's'): readonly unknown[] => withdrawnOf(told(at === 's' ? at : `r${at}`));
const answer = (id: unknown, text: string): Promise<unknown> =>
  bench.post('k', { jsonrpc: '2.0', id, result: { text } });
const replied = async (at: Offset | 's', which: number, text: string): Promise<void> => {
  await bench.until(() => questions(at).length > which);
  await answer(questions(at)[which], text);
};
/** Holds the reading of what had been said. */
const holding =
  (reading: { isHeld: boolean; isReading: boolean }) =>
  (log: MemoryLog): Log => ({
    ...log,
    read: async (from, position, options) => {
      // Readers wait for records; whoever reads what was said does not.
      if (from.topic === 'events' && options?.waitMs === undefined) {
        reading.isReading = true;
        while (reading.isHeld) await sleep(bench.time.clock('held'), 50, new AbortController().signal);
      }
      return log.read(from, position, options);
    },
  });
/** What the log accepted last of what it accepted on streams and of sessions: streams, `end` for ends of sessions. */
const order = (): readonly string[] =>
  bench
    .accepted()
    .flatMap(({ body }) =>
      body.type === 'message' ? [formatTarget(body.stream)] : body.type === 'sessionEnded' ? ['end'] : [],
    );
const runs = (): readonly string[] => bench.runs.map(({ worker }) => worker);

describe('a question that is open when its owner dies', () => {
  it('[WRK-MEMORY] is asked once, and its answer reaches the new run', async () => {
    const first = await openWith(1);
    // The server counts its questions, and a rebuilt one counts anew.
    const before = await converse([{ ask: 'who?' }], {}, 9);
    await replied(before, 0, 'me');
    await bench.ended(before);
    const at = await converse([{ ask: 'name?' }, { ms: 1000 }]);
    await spoken(at, 1);
    first.crash();
    const second = await bench.start(QUICK);
    const responses = (): number => second.host.opened[0]?.methods.filter((name) => name === 'response').length ?? 0;
    await bench.until(() => bench.runs.length === 3);
    await bench.time.advance(5000);
    expect(responses()).toBe(0);
    await replied(at, 0, 'Ada');
    await replied(at, 0, 'Bob');
    const { messages, ends } = await bench.ended(at);
    expect([textOf(messages[1]), messages.length, ends]).toEqual(['Ada', 2, 1]);
    expect([responses(), runs()]).toEqual([1, ['worker-1', 'worker-1', 'worker-2']]);
  });

  it('[WRK-MEMORY] was answered before the newest checkpoint: the new run is told at once', async () => {
    const first = await openWith(12);
    const at = await converse([{ ask: 'name?' }, { ms: 60_000, ask: 'age?' }]);
    await replied(at, 0, 'Ada');
    await bench.time.advance(20_000);
    first.crash();
    await bench.start(QUICK);
    await replied(at, 1, '36');
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), textOf(messages[2])]).toEqual([[ASK, ASK], 'Ada,36']);
  });

  it('[WRK-MEMORY] stays open when another call ends the server before the new run', async () => {
    const config = { ...QUICK.config, maxRunningPerSession: 1 };
    const first = await openWith(13, { config });
    const at = await converse([{ ask: 'name?' }]);
    await spoken(at, 1);
    first.crash();
    const other = await bench.call('k', 2, 'die', { ms: 2000 });
    await bench.start({ config });
    expect(errorOf((await bench.ended(other)).messages[0])?.code).toBe('SERVER_FAILED');
    await bench.until(() => bench.runs.length === 3);
    await replied(at, 0, 'Ada');
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), textOf(messages[1])]).toEqual([[ASK], 'Ada']);
  });

  it('[WRK-MEMORY] is answered while nobody owns the partition', async () => {
    const first = await openWith(2);
    const at = await converse([{ ask: 'name?' }]);
    await spoken(at, 1);
    first.crash();
    await replied(at, 0, 'Ada');
    await bench.start(QUICK);
    expect(textOf((await bench.ended(at)).messages[1])).toBe('Ada');
    expect(questions(at)).toHaveLength(1);
  });

  it('[WRK-MEMORY] is answered while the new owner reads what had been said', async () => {
    const first = await openWith(3);
    const at = await converse([{ ask: 'name?' }]);
    await spoken(at, 1);
    const asked = questions(at)[0];
    first.crash();
    const reading = { isHeld: true, isReading: false };
    const second = await bench.start({ ...QUICK, wrap: holding(reading) });
    await bench.until(() => reading.isReading && second.worker.owned().length === 1);
    await answer(asked, 'Ada');
    await bench.time.advance(2000);
    expect(runs()).toEqual(['worker-1']);
    reading.isHeld = false;
    expect(textOf((await bench.ended(at)).messages[1])).toBe('Ada');
  });

  it('[WRK-MEMORY] is answered before the new run asks it', async () => {
    const first = await openWith(4);
    const at = await converse([{ log: 'begin' }, { ms: 1000, ask: 'name?' }]);
    await spoken(at, 2);
    first.crash();
    await bench.start(QUICK);
    await bench.until(() => bench.runs.length === 2);
    await bench.time.advance(100);
    await replied(at, 0, 'Ada');
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), textOf(messages[2])]).toEqual([[LOG, ASK], 'Ada']);
  });

  it('[WRK-MEMORY] is answered while the call waits for a place', async () => {
    const config = { ...QUICK.config, maxRunningPerSession: 1 };
    const first = await openWith(5, { config });
    const at = await converse([{ ask: 'name?' }]);
    await spoken(at, 1);
    first.crash();
    await bench.start({ config, host: { openMs: 3000 } });
    await bench.until(() => bench.accepted().filter(({ body }) => body.type === 'claimed').length === 2);
    await bench.time.advance(1000);
    await replied(at, 0, 'Ada');
    const { messages } = await bench.ended(at);
    expect([textOf(messages[1]), messages.length]).toEqual(['Ada', 2]);
  });

  it('[WRK-MEMORY] takes the first of two answers only', async () => {
    const first = await openWith(6);
    const at = await converse([{ ask: 'name?' }]);
    await spoken(at, 1);
    first.crash();
    await replied(at, 0, 'Ada');
    const second = await bench.start(QUICK);
    await replied(at, 0, 'Bob');
    expect(textOf((await bench.ended(at)).messages[1])).toBe('Ada');
    expect(second.host.opened[0]?.methods.filter((method) => method === 'response')).toHaveLength(1);
  });

  it.each(['sampling/createMessage', 'roots/list', ASK])('[WRK-MEMORY] may be any request: %s', async (method) => {
    const first = await openWith(7);
    const at = await converse([
      { ask: 'what?', method },
      { ask: 'and?', method },
    ]);
    await replied(at, 0, 'this');
    await spoken(at, 2);
    first.crash();
    await bench.start(QUICK);
    await bench.until(() => bench.runs.length === 2);
    await replied(at, 1, 'that');
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), textOf(messages[2])]).toEqual([[method, method], 'this,that']);
  });

  it('[WRK-MEMORY] stays open over a planned stop that does not wait for the person', async () => {
    const first = await openWith(8, { config: { ...QUICK.config, drainMs: 100 } });
    const at = await converse([{ ask: 'name?' }]);
    await spoken(at, 1);
    await bench.time.run(first.worker.stop());
    await bench.start(QUICK);
    await bench.until(() => bench.runs.length === 2);
    await replied(at, 0, 'Ada');
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), textOf(messages[1])]).toEqual([[ASK], 'Ada']);
  });

  it('[WRK-ATTEMPTS] stays open over one crash and any number of planned stops behind it, and over no second crash', async () => {
    const config = { ...QUICK.config, drainMs: 100 };
    let worker = await openWith(14, { config });
    const at = await converse([{ ask: 'name?' }]);
    for (let owner = 1; owner <= 5; owner++) {
      await bench.until(() => bench.runs.length === owner);
      await spoken(at, 1);
      await bench.time.advance(100);
      // The first owner crashes, the others stop in order.
      if (owner === 1) worker.crash();
      else await bench.time.run(worker.worker.stop());
      worker = await bench.start({ config });
    }
    await bench.until(() => bench.runs.length === 6);
    expect(said(at)).toHaveLength(1);
    worker.crash();
    await bench.start({ config });
    expect(errorOf((await bench.ended(at)).messages.at(-1))).toEqual(LOST);
    expect([bench.runs.length, questions(at).length]).toEqual([6, 1]);
  });

  it('[WRK-MEMORY] that the server takes back is taken back under the id that the client knows', async () => {
    const first = await openWith(9);
    const at = await converse([{ ask: 'name?', patienceMs: 10_000 }]);
    await spoken(at, 1);
    first.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), textOf(messages[2])]).toEqual([[ASK, WITHDRAWN], 'none']);
    expect(withdrawn(at)).toEqual(questions(at));
  });

  it('[WRK-MEMORY] that was taken back before is taken back once, and a late answer does not reach the new run', async () => {
    const first = await openWith(10);
    const at = await converse([{ ask: 'name?', patienceMs: 1000 }, { ms: 60_000 }]);
    await spoken(at, 2);
    await replied(at, 0, 'late');
    first.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), textOf(messages[2])]).toEqual([[ASK, WITHDRAWN], 'none']);
  });

  it('[WRK-MEMORY] to which a repeated request listens too is told there once', async () => {
    const first = await openWith(11);
    const at = await converse([{ log: 'begin' }, { ask: 'name?' }, { log: 'end' }]);
    await spoken(at, 2);
    const again = await converse([{ log: 'begin' }, { ask: 'name?' }, { log: 'end' }]);
    await spoken(again, 2);
    first.crash();
    await bench.start(QUICK);
    await bench.until(() => bench.runs.length === 2);
    await replied(at, 0, 'Ada');
    const [one, two] = [await bench.ended(at), await bench.ended(again)];
    expect(methodsOf(one.messages)).toEqual([LOG, ASK, LOG]);
    expect(two.messages).toEqual(one.messages);
  });
});

describe('what a call had said when its owner died', () => {
  it.each(['converse', 'consult'])('[WRK-MEMORY] is not said again, and the rest is: %s', async (tool) => {
    const first = await openWith(20);
    const script = [{ progress: 1 }, { ms: 100, progress: 2 }, { ms: 1000, progress: 3 }, { log: 'done' }];
    const at = await bench.call('k', 1, tool, { script });
    await spoken(at, 2);
    first.crash();
    await bench.start(QUICK);
    const { messages, ends } = await bench.ended(at);
    expect([methodsOf(messages), ends]).toEqual([[PROGRESS, PROGRESS, PROGRESS, LOG], 1]);
    expect(messages.slice(0, 3)).toMatchObject([1, 2, 3].map((progress) => ({ params: { progress } })));
    expect(runs()).toHaveLength(2);
  });

  it('[WRK-MEMORY] is what the log accepted: words of an owner that was none are not remembered', async () => {
    const first = await openWith(33);
    const at = await converse([{ log: 'begin' }, { ms: 1000 }]);
    await spoken(at, 1);
    const value = JSON.stringify({ jsonrpc: '2.0', method: LOG, params: { data: 'zombie' } });
    await bench.log.append(EVENTS, [makeRecord('message', 'k', value, { stream: `r${at}`, owner: '99999' })]);
    first.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), textOf(messages[1])]).toEqual([[LOG], '']);
  });

  it('[WRK-MEMORY] decides, and not the order in which calls of the session were started', async () => {
    const first = await openWith(21);
    const [a, b] = [await converse([{ ask: 'a?' }]), await converse([{ ask: 'b?' }], {}, 2)];
    await spoken(a, 1);
    await spoken(b, 1);
    first.crash();
    await bench.start(QUICK);
    await bench.until(() => bench.runs.length === 4);
    await replied(b, 0, 'B');
    await replied(a, 0, 'A');
    expect([textOf((await bench.ended(a)).messages[1]), textOf((await bench.ended(b)).messages[1])]).toEqual([
      'A',
      'B',
    ]);
    expect([questions(a).length, questions(b).length]).toEqual([1, 1]);
  });

  it('[WRK-MEMORY-DIFFERS] and that the new run does not say fails the call; its open question is withdrawn and its server told', async () => {
    const first = await openWith(22);
    const at = await converse([{ ask: 'name?' }, { ask: 'age?' }]);
    await replied(at, 0, 'Ada');
    await spoken(at, 2);
    first.crash();
    // The first run was asked something else.
    const second = await bench.start({ ...QUICK, host: { mishears: true } });
    const { messages } = await bench.ended(at);
    expect(methodsOf(messages)).toEqual([ASK, ASK, WITHDRAWN]);
    expect(withdrawn(at)).toEqual([questions(at)[1]]);
    expect(errorOf(messages[3])).toEqual(LOST);
    await bench.time.advance(100);
    expect(second.host.opened[0]?.methods.at(-1)).toBe(WITHDRAWN);
    expect(second.host.opened[0]?.received.at(-1)).toMatchObject({ params: { requestId: 1 } });
  });

  it('[WRK-MEMORY-DIFFERS] in other words fails the call, and nothing of the new run is told', async () => {
    const first = await openWith(23);
    const at = await converse([{ drift: true }, { ms: 1000 }]);
    await spoken(at, 1);
    first.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), errorOf(messages[1])]).toEqual([[LOG], LOST]);
  });

  it('[WRK-MEMORY-DIFFERS] does not harm other calls that repeat what they had said', async () => {
    const first = await openWith(34);
    const other = await converse([{ drift: true }, { ask: 'what?' }]);
    const at = await converse([{ log: 'begin' }, { ask: 'name?' }], {}, 2);
    await spoken(other, 2);
    await spoken(at, 2);
    first.crash();
    await bench.start(QUICK);
    expect(errorOf((await bench.ended(other)).messages.at(-1))).toEqual(LOST);
    await replied(at, 0, 'Ada');
    expect(textOf((await bench.ended(at)).messages[2])).toBe('Ada');
    expect(questions(other)).toHaveLength(1);
  });

  it('[WRK-MEMORY-DIFFERS] and that a result comes before fails the call', async () => {
    const first = await openWith(24);
    const at = await bench.call('k', 1, 'upsert', { ms: 1000 });
    await bench.until(() => bench.runs.length === 1);
    await first.host.opened[0]?.ask(ASK, 1);
    await spoken(at, 1);
    first.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), errorOf(messages[2])]).toEqual([[ASK, WITHDRAWN], LOST]);
  });

  it('[WRK-MEMORY] does not matter to a client that has cancelled: nothing runs', async () => {
    const first = await openWith(25);
    const at = await converse([{ ask: 'name?' }]);
    await spoken(at, 1);
    first.crash();
    await bench.post('k', { jsonrpc: '2.0', method: WITHDRAWN, params: { requestId: 1 } });
    await bench.start(QUICK);
    const { messages, ends } = await bench.ended(at);
    expect([methodsOf(messages), ends, runs()]).toEqual([[ASK], 1, ['worker-1']]);
  });

  it('[WRK-MEMORY] counts for one more run and no third', async () => {
    const first = await openWith(26);
    const at = await converse([{ ask: 'name?' }]);
    await spoken(at, 1);
    first.crash();
    const second = await bench.start(QUICK);
    await bench.until(() => bench.runs.length === 2);
    await bench.time.advance(100);
    second.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), errorOf(messages[2]), runs().length]).toEqual([[ASK, WITHDRAWN], LOST, 2]);
    expect(withdrawn(at)).toEqual(questions(at));
  });

  it('[WRK-WITHDRAW] and asked is withdrawn if the call may not be run again', async () => {
    const first = await openWith(27);
    const at = await bench.call('k', 1, 'effect', { script: [{ ask: 'name?' }, { ask: 'age?' }] });
    await replied(at, 0, 'Ada');
    await spoken(at, 2);
    first.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), errorOf(messages[3])]).toEqual([[ASK, ASK, WITHDRAWN], LOST]);
    expect(withdrawn(at)).toEqual([questions(at)[1]]);
    expect(runs()).toHaveLength(1);
  });

  it('[WRK-WITHDRAW] and asked is withdrawn also if its session ends with its owner: before its error and the end of the session', async () => {
    const first = await openWith(37, TERMINATE);
    const script = [{ ask: 'name?' }, { ask: 'age?' }];
    const [a, b] = [await converse(script), await bench.call('k', 2, 'effect', { script })];
    for (const at of [a, b]) await replied(at, 0, 'Ada');
    for (const at of [a, b]) await spoken(at, 2);
    first.crash();
    await bench.start(TERMINATE);
    for (const at of [a, b]) {
      const { messages } = await bench.ended(at);
      expect([methodsOf(messages), errorOf(messages[3])]).toEqual([[ASK, ASK, WITHDRAWN], LOST]);
      expect(withdrawn(at)).toEqual([questions(at)[1]]);
    }
    await bench.until(() => bench.session('k').endReason === 'owner-lost');
    expect([order().slice(-5), runs().length]).toEqual([[`r${a}`, `r${a}`, `r${b}`, `r${b}`, 'end'], 2]);
  });

  it('[WRK-WITHDRAW] and asked is still being read of a session that ends with its owner: nothing new runs in it, others are served', async () => {
    const first = await openWith(38, TERMINATE);
    const at = await converse([{ ask: 'name?' }]);
    await spoken(at, 1);
    first.crash();
    const reading = { isHeld: true, isReading: false };
    await bench.start({ ...TERMINATE, wrap: holding(reading) });
    await bench.until(() => reading.isReading);
    const late = await bench.call('k', 2, 'effect');
    expect(errorOf((await bench.ended(late)).messages[0])?.code).toBe('SESSION_ENDED');
    await bench.open('other');
    expect([runs().length, said(at).length, bench.session('k').endReason]).toEqual([1, 1, null]);
    reading.isHeld = false;
    await bench.ended(at);
    expect(withdrawn(at)).toEqual(questions(at));
    await bench.until(() => bench.session('k').endReason === 'owner-lost');
    expect(order().filter((each) => each === 'end')).toHaveLength(1);
  });

  it('[WRK-WITHDRAW] and asked is withdrawn if the session ends before the call is run again', async () => {
    const first = await openWith(28);
    const at = await converse([{ ask: 'name?' }]);
    await spoken(at, 1);
    first.crash();
    await bench.start({ ...QUICK, host: { openMs: 60_000 } });
    await bench.time.advance(3000);
    await bench.end('k');
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), errorOf(messages[2])?.code]).toEqual([[ASK, WITHDRAWN], 'SESSION_ENDED']);
  });

  it.each<[string, ScriptStep[]]>([
    ['more than a thousand messages', Array.from({ length: 1001 }, (_, progress) => ({ progress }))],
    ['more than a MiB', Array.from({ length: 5 }, () => ({ log: 'x'.repeat(250_000) }))],
  ])(
    '[WRK-MEMORY-BOUND] and is %s is not remembered: the call fails and its question is withdrawn',
    async (_what, many) => {
      const first = await openWith(29);
      const at = await converse([...many, { ask: 'name?' }]);
      await spoken(at, many.length + 1);
      first.crash();
      await bench.start(QUICK);
      const { messages } = await bench.ended(at);
      expect([methodsOf(messages).at(-1), errorOf(messages.at(-1))]).toEqual([WITHDRAWN, LOST]);
      expect(withdrawn(at)).toEqual(questions(at));
      expect(runs()).toHaveLength(1);
    },
  );

  it('[WRK-MEMORY-BOUND] is counted once: 450 questions and 449 answers, none of them in a checkpoint, are remembered', async () => {
    const config = { ...QUICK.config, checkpointMs: 600_000 };
    const first = await openWith(34, { config });
    const at = await converse(Array.from({ length: 450 }, () => ({ ask: '?' })));
    for (let which = 0; which < 449; which++) await replied(at, which, 'a');
    await spoken(at, 450);
    first.crash();
    await bench.start({ config });
    await replied(at, 449, 'z');
    const { messages } = await bench.ended(at);
    expect([textOf(messages.at(-1))?.at(-1), messages.length]).toEqual(['z', 451]);
  });

  it('[WRK-MEMORY-BOUND] is counted once: an answer of 600 KiB to each of two calls is remembered, whenever it came', async () => {
    const config = { ...QUICK.config, checkpointMs: 600_000 };
    const first = await openWith(35, { config });
    const text = 'h'.repeat(600 * 1024);
    const [a, b] = [
      await converse([{ ask: 'a?' }, { ms: 60_000 }]),
      await converse([{ ask: 'b?' }, { ms: 60_000 }], {}, 2),
    ];
    await replied(a, 0, text);
    await replied(b, 0, text);
    await bench.time.advance(100);
    first.crash();
    await bench.start({ config });
    for (const at of [a, b]) expect(textOf((await bench.ended(at)).messages[1])).toBe(text);
  });

  it('[WRK-MEMORY-BOUND] and is answered by more than a MiB while it is being read is not remembered', async () => {
    const first = await openWith(36);
    const at = await converse([{ ask: 'a?' }, { ask: 'b?' }]);
    await spoken(at, 1);
    first.crash();
    const reading = { isHeld: true, isReading: false };
    await bench.start({ ...QUICK, wrap: holding(reading) });
    await bench.until(() => reading.isReading);
    await answer(questions(at)[0], 'h'.repeat(1024 * 1024));
    await bench.time.advance(100);
    reading.isHeld = false;
    expect(errorOf((await bench.ended(at)).messages.at(-1))).toEqual(LOST);
    expect(runs()).toHaveLength(1);
  });

  it('[WRK-MEMORY-BOUND] and of which retention took a part is not remembered: the call fails', async () => {
    const first = await openWith(30);
    const at = await converse([{ progress: 1 }, { ms: 10_000, progress: 2 }, { ask: 'name?' }]);
    await spoken(at, 3);
    const asked = bench
      .accepted()
      .filter(({ body }) => body.type === 'message')
      .at(-1)!.offset;
    // A checkpoint behind it, so that the call itself is known.
    await bench.ended(await bench.call('k', 2, 'lookup'));
    await bench.time.advance(10_000);
    first.crash();
    bench.store.controls.evictBefore(EVENTS, asked);
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect(errorOf(messages.at(-1))).toEqual(LOST);
    expect(runs()).toHaveLength(2);
    expect(withdrawn(at)).toEqual(questions(at));
  });

  it('[WRK-MEMORY-BOUND] and of which nobody said where it begins is read from the beginning', async () => {
    const first = await openWith(31);
    const params = { name: 'converse', arguments: { script: [{ ask: 'name?' }] } };
    const [at = -1] = await bench.post('k', { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { after: null });
    await spoken(at, 1);
    await bench.time.advance(10_000);
    first.crash();
    await bench.start(QUICK);
    await replied(at, 0, 'Ada');
    expect(textOf((await bench.ended(at)).messages[1])).toBe('Ada');
    expect(bench.records(INBOUND).length).toBeGreaterThan(0);
  });

  it('[WRK-MEMORY] in a batch cannot be told apart: the call fails as before', async () => {
    const first = await openWith(32);
    const request = (id: number): object => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'converse', arguments: { script: [{ log: id }, { ms: 60_000 }] } },
    });
    const [at = -1] = await bench.post('k', [request(1), request(2)], { version: '2025-03-26' });
    await spoken(at, 2);
    first.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), errorOf(messages[2]), errorOf(messages[3])]).toEqual([[LOG, LOG], LOST, LOST]);
    expect(runs()).toHaveLength(2);
  });
});

describe('a server that does not tell whose its messages are', () => {
  it('[WRK-MEMORY-STDIO] is known by its words, also when other calls run', async () => {
    const first = await openWith(40);
    const at = await converse([{ log: 'begin' }, { ask: 'name?' }], { related: false });
    await spoken(at, 2);
    const other = await bench.call('k', 2, 'upsert', { ms: 60_000 });
    await bench.until(() => bench.runs.length === 2);
    await bench.attach('k');
    first.crash();
    await bench.start(QUICK);
    await bench.until(() => bench.runs.length === 4);
    await replied(at, 0, 'Ada');
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), textOf(messages[2])]).toEqual([[LOG, ASK], 'Ada']);
    expect(methodsOf(bench.stream('s').messages)).not.toContain(ASK);
    await bench.ended(other);
  });

  it('[WRK-MEMORY-STDIO] that asks something else fails the call that repeats itself, and asks nobody', async () => {
    const first = await openWith(41);
    const at = await converse([{ ask: 'name?' }, { ask: 'age?' }], { related: false });
    await replied(at, 0, 'Ada');
    await spoken(at, 2);
    first.crash();
    await bench.start({ ...QUICK, host: { mishears: true } });
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), errorOf(messages[3])]).toEqual([[ASK, ASK, WITHDRAWN], LOST]);
    await bench.time.advance(1000);
    expect(methodsOf(bench.stream('s').messages)).not.toContain(ASK);
  });

  it('[WRK-MEMORY-STDIO] may ask for another call meanwhile: that is told on its stream, and the repetition goes on', async () => {
    const first = await openWith(43);
    const at = await converse([{ log: 'begin' }, { ms: 2000 }, { ask: 'name?' }], { related: false });
    await spoken(at, 2);
    first.crash();
    await bench.start(QUICK);
    const other = await bench.call('k', 2, 'effect', { script: [{ ask: 'other?' }], related: false });
    await replied(other, 0, 'yes');
    expect(textOf((await bench.ended(other)).messages[1])).toBe('yes');
    await replied(at, 0, 'Ada');
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), textOf(messages[2])]).toEqual([[LOG, ASK], 'Ada']);
  });

  it('[WRK-MEMORY-STDIO] may speak for itself when it starts', async () => {
    const first = await openWith(42);
    const at = await converse([{ ask: 'name?' }], { related: false });
    await spoken(at, 1);
    first.crash();
    await bench.start({ ...QUICK, host: { greets: true } });
    await bench.until(() => bench.runs.length === 2);
    await replied(at, 0, 'Ada');
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), textOf(messages[1])]).toEqual([[ASK], 'Ada']);
    expect(methodsOf(bench.stream('s').messages)).toContain(LOG);
  });

  const ANYBODYS = { related: false };

  it('[WRK-MEMORY-STDIO] asks where several calls run: none of them is run again, what is open is withdrawn on the standalone stream before', async () => {
    const first = await openWith(44);
    await bench.attach('k');
    const at = await converse([{ ask: 'a1?' }, { ask: 'a2?' }], ANYBODYS);
    await spoken(at, 1);
    const other = await converse([{ ask: 'b1?' }], ANYBODYS, 2);
    await bench.until(() => questions('s').length === 1);
    await replied(at, 0, 'A1');
    await bench.until(() => questions('s').length === 2);
    await replied('s', 0, 'B1');
    // Only the first call runs now, and its question stands elsewhere.
    await bench.ended(other);
    await bench.time.advance(10_000);
    first.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), errorOf(messages[1])]).toEqual([[ASK], LOST]);
    expect(withdrawn('s')).toEqual([questions('s')[1]]);
    expect(order().slice(-2)).toEqual(['s', `r${at}`]);
    expect(runs()).toHaveLength(2);
  });

  it('[WRK-MEMORY-STDIO] asks for two calls at once: nobody is asked again, and each question is withdrawn once', async () => {
    const first = await openWith(45);
    await bench.attach('k');
    const [a, b] = [
      await converse([{ ms: 10, ask: 'a1?' }, { ask: 'a2?' }], ANYBODYS),
      await converse([{ ms: 10, ask: 'b1?' }, { ask: 'b2?' }], ANYBODYS, 2),
    ];
    await bench.until(() => questions('s').length === 2);
    await replied('s', 0, 'A1');
    await replied('s', 1, 'B1');
    await bench.until(() => questions('s').length === 4);
    first.crash();
    await bench.start(QUICK);
    for (const at of [a, b]) expect(errorOf((await bench.ended(at)).messages[0])).toEqual(LOST);
    expect(questions('s')).toHaveLength(4);
    expect(withdrawn('s')).toEqual(questions('s').slice(2));
    expect(runs()).toHaveLength(2);
  });

  it('[WRK-MEMORY-STDIO] asks on the stream of another call, for want of a standalone one: it is withdrawn there, or on its own if that has ended', async () => {
    const first = await openWith(46);
    const open = await converse([{ ms: 60_000 }], ANYBODYS);
    const [a, b] = [
      await converse([{ ask: 'a?' }], ANYBODYS, 2),
      await converse([{ ms: 100, ask: 'b?' }], ANYBODYS, 3),
    ];
    await spoken(open, 2);
    await bench.post('k', { jsonrpc: '2.0', method: WITHDRAWN, params: { requestId: 1 } });
    await bench.ended(open);
    const c = await converse([{ ask: 'c?' }], ANYBODYS, 4);
    await spoken(a, 1);
    first.crash();
    await bench.start(QUICK);
    for (const at of [a, b, c]) expect(errorOf((await bench.ended(at)).messages.at(-1))).toEqual(LOST);
    expect([...withdrawn(a), ...withdrawn(b), ...withdrawn(c)].sort()).toEqual(
      [...questions(open), ...questions(a)].sort(),
    );
    expect([withdrawn(a).includes(questions(a)[0]), withdrawn(open), questions('s')]).toEqual([true, [], []]);
    expect(runs()).toHaveLength(4);
  });

  it('[WRK-MEMORY-STDIO] asks, and nobody can read whose that may be: every call that ran by then is lost, and none that came later', async () => {
    // What a later version may write: this one does not know it.
    const unread = (record: RecordInput): RecordInput => ({
      ...record,
      headers: record.headers.map(([name, value]) => [name, name === 'among' ? encodeText('some') : value]),
    });
    const first = await openWith(49, {
      ...QUICK,
      wrap: (log) => ({ ...log, append: (to, records) => log.append(to, records.map(unread)) }),
    });
    await bench.attach('k');
    const calls = [await converse([{ ms: 10, ask: 'a?' }], ANYBODYS), await converse([{ ms: 60_000 }], ANYBODYS, 2)];
    await bench.until(() => questions('s').length === 1);
    const later = await converse([{ progress: 1 }, { ms: 5000 }], {}, 3);
    await spoken(later, 1);
    first.crash();
    await bench.start(QUICK);
    for (const at of calls) expect(errorOf((await bench.ended(at)).messages[0])).toEqual(LOST);
    const { messages } = await bench.ended(later);
    expect([methodsOf(messages), textOf(messages[1])]).toEqual([[PROGRESS], '']);
    expect([questions('s').length, withdrawn('s')]).toEqual([1, questions('s')]);
  });

  it('[WRK-MEMORY-STDIO] takes back what it asked for one of several calls: that is not withdrawn a second time', async () => {
    const first = await openWith(47);
    await bench.attach('k');
    const other = await converse([{ ms: 60_000 }], ANYBODYS);
    const at = await converse([{ ask: 'a?', patienceMs: 1000 }, { ms: 60_000 }], ANYBODYS, 2);
    await bench.until(() => told('s').length === 2);
    first.crash();
    await bench.start(QUICK);
    for (const each of [at, other]) expect(errorOf((await bench.ended(each)).messages[0])).toEqual(LOST);
    expect(methodsOf(told('s'))).toEqual([ASK, WITHDRAWN]);
  });

  it('[WRK-MEMORY-STDIO] asks out of its turn what a call remembers: the call fails, and nobody is asked again', async () => {
    const first = await openWith(48);
    const at = await converse([{ ms: 100, ask: 'a?' }], ANYBODYS);
    await bench.until(() => bench.runs.length === 1);
    // Something of its own, while only this call runs.
    await first.host.opened[0]?.ask('roots/list');
    await spoken(at, 2);
    const other = await converse([{ ms: 60_000 }], ANYBODYS, 2);
    await bench.until(() => bench.runs.length === 2);
    first.crash();
    await bench.start(QUICK);
    const { messages } = await bench.ended(at);
    expect([methodsOf(messages), errorOf(messages.at(-1))]).toEqual([['roots/list', ASK, WITHDRAWN, WITHDRAWN], LOST]);
    expect(textOf((await bench.ended(other)).messages[0])).toBe('');
  });
});
