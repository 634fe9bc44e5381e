/** What is not promised about tools and sessions: each limit of docs/reference/guarantees.md that a worker shows. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Offset } from '@throughline/protocol';
import { errorOf, questionsOf, textOf, withdrawnOf } from './testing/messages.ts';
import type { ScriptStep } from './testing/scripted-host.ts';
import { EVENTS, INBOUND, openBench } from './testing/worker-bench.ts';
import type { Bench, BenchWorker, WorkerChoice } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const QUICK: WorkerChoice = { config: { heartbeatMs: 100, deadAfterMs: 400, checkpointMs: 500 } };
const TERMINATE: WorkerChoice = { ...QUICK, onOwnerLoss: 'terminate' };
const LATER_MS = 90_000;

async function openWith(seed: number, choice = QUICK): Promise<BenchWorker> {
  bench = await openBench(seed);
  const worker = await bench.start(choice);
  await bench.open('k');
  return worker;
}

const ran = (): readonly string[] => bench.runs.map(({ tool, token }) => `${tool} ${token}`);
const answer = (id: unknown, text: string): Promise<unknown> =>
  bench.post('k', { jsonrpc: '2.0', id, result: { text } });

describe('limits of the promise', () => {
  it('[LIM-ONCE] a tool that finished and one that had just begun are told alike when their worker dies: OWNER_LOST, may have run', async () => {
    let isSilent = false;
    bench = await openBench(1);
    // Nothing that the server says after the death of the network comes into the log.
    const first = await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        append: (to, records) =>
          isSilent && to.topic === 'events' ? new Promise(() => undefined) : log.append(to, records),
      }),
    });
    await bench.open('k');
    const done = await bench.call('k', 1, 'effect', { ms: 100, token: 'done' });
    const begun = await bench.call('k', 2, 'hang', { token: 'begun' });
    await bench.until(() => bench.runs.length === 2);
    isSilent = true;
    await bench.time.advance(200);
    first.crash();
    await bench.start(QUICK);
    const lost = { code: 'OWNER_LOST', mayHaveRun: true };
    expect(errorOf((await bench.ended(done)).messages[0])).toEqual(lost);
    expect(errorOf((await bench.ended(begun)).messages[0])).toEqual(lost);
    expect(ran()).toEqual(['effect done', 'hang begun']);
  });

  it('[LIM-ANNOTATION] an annotation is believed: a tool that says it is idempotent runs twice when its worker dies, whatever it does', async () => {
    const first = await openWith(2);
    const at = await bench.call('k', 1, 'upsert', { ms: 1000, token: 't' });
    await bench.until(() => bench.runs.length === 1);
    first.crash();
    await bench.start(QUICK);
    expect(textOf((await bench.ended(at)).messages[0])).toBe('upsert t');
    expect(ran()).toEqual(['upsert t', 'upsert t']);
  });

  it('[LIM-ANNOTATION] it runs again after each planned stop that cuts a run of it short, and not after the death of an owner in a later run than the first', async () => {
    const config = { ...QUICK.config, drainMs: 100 };
    let worker = await openWith(21, { config });
    const at = await bench.call('k', 1, 'upsert', { ms: 60_000, token: 't' });
    const ends = ['stop', 'stop', 'stop', 'crash'];
    for (const [index, end] of ends.entries()) {
      await bench.until(() => bench.runs.length === index + 1);
      await bench.time.advance(100);
      if (end === 'crash') worker.crash();
      else await bench.time.run(worker.worker.stop());
      worker = await bench.start({ config });
    }
    expect(errorOf((await bench.ended(at)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
    expect(ran()).toEqual(Array.from({ length: 4 }, () => 'upsert t'));
  });

  it('[LIM-SAME-WORDS] a tool that says something else in its second run, or the same in another order, is lost', async () => {
    const first = await openWith(20);
    const other = await bench.call('k', 1, 'converse', { script: [{ drift: true }, { ask: 'name?' }] });
    const late = await bench.call('k', 2, 'converse', { script: [{ log: 'begin' }, { ms: 60_000 }] });
    // A timer of the tool: in the first run it fires before, in the second after what the tool says.
    await bench.until(() => bench.runs.length === 2);
    await first.host.opened[0]?.say({ method: 'notifications/message', params: { data: 'tick' } }, 2);
    await bench.until(() => bench.stream(`r${other}`).messages.length === 2);
    first.crash();
    const second = await bench.start(QUICK);
    await bench.until(() => bench.runs.length === 4);
    await second.host.opened[0]?.say({ method: 'notifications/message', params: { data: 'tock' } }, 2);
    for (const at of [other, late])
      expect(errorOf((await bench.ended(at)).messages.at(-1))).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
  });

  it('[LIM-WHOSE] calls of which nobody knows which of them asked are lost with their worker; log lines of that time are said again', async () => {
    const first = await openWith(22);
    await bench.attach('k');
    const script = [{ ms: 10, log: 'begin' }, { ms: 60_000 }];
    const quiet = [
      await bench.call('k', 1, 'converse', { script, related: false }),
      await bench.call('k', 2, 'converse', { script, related: false }),
    ];
    const begun = (): number =>
      bench.stream('s').messages.filter((each) => 'method' in each && each.method === 'notifications/message').length;
    await bench.until(() => begun() === 2);
    first.crash();
    const config = { ...QUICK.config, drainMs: 100 };
    const second = await bench.start({ config });
    await bench.until(() => begun() === 4);
    await bench.attach('k');
    await bench.time.advance(100);
    await second.host.opened[0]?.ask('elicitation/create');
    await bench.time.advance(100);
    // After a planned stop they would run again.
    await bench.time.run(second.worker.stop());
    const third = await bench.start({ config });
    for (const at of quiet)
      expect(errorOf((await bench.ended(at)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
    const asked = bench.stream('s').messages.flatMap((message) => ('id' in message ? [message.id] : []));
    expect(asked).toHaveLength(1);
    expect(bench.stream('s').messages.at(-1)).toMatchObject({
      method: 'notifications/cancelled',
      params: { requestId: asked[0] },
    });
    expect([bench.runs.length, third.host.opened.length]).toEqual([4, 0]);
  });

  it('[LIM-WHOSE] a question asked while several calls run ends each of them when the worker dies, its form is withdrawn, and nobody is asked anew', async () => {
    const first = await openWith(23);
    await bench.attach('k');
    const calls = [
      await bench.call('k', 1, 'converse', { script: [{ ms: 100, ask: 'name?' }], related: false }),
      await bench.call('k', 2, 'converse', { script: [{ ms: 60_000 }], related: false }),
    ];
    const forms = (): readonly unknown[] => questionsOf(bench.stream('s').messages);
    await bench.until(() => forms().length === 1);
    first.crash();
    await bench.start(QUICK);
    for (const at of calls)
      expect(errorOf((await bench.ended(at)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
    await answer(forms()[0], 'Ada');
    await bench.time.advance(LATER_MS);
    expect([forms().length, withdrawnOf(bench.stream('s').messages)]).toEqual([1, forms()]);
    expect(bench.runs).toHaveLength(2);
  });

  it('[LIM-WHOSE] what is asked while no call runs is not withdrawn when the worker dies, and its answer is dropped', async () => {
    const first = await openWith(24);
    await bench.attach('k');
    await first.host.opened[0]?.ask('elicitation/create');
    const forms = (): readonly unknown[] => questionsOf(bench.stream('s').messages);
    await bench.until(() => forms().length === 1);
    first.crash();
    const second = await bench.start(QUICK);
    await answer(forms()[0], 'Ada');
    // Whatever comes to the server after that, the answer is not in it.
    await bench.ended(await bench.call('k', 1, 'effect'));
    await bench.time.advance(LATER_MS);
    expect(withdrawnOf(bench.stream('s').messages)).toEqual([]);
    expect(second.host.opened[0]?.methods).toEqual(['initialize', 'notifications/initialized', 'tools/call']);
  });

  it('[LIM-WHOSE] two calls that ask the same in the same words while they are run again may be given the answers of each other', async () => {
    const first = await openWith(25);
    const converse = (id: number, ...script: readonly ScriptStep[]): Promise<Offset> =>
      bench.call('k', id, 'converse', { script, related: false });
    const a = await converse(1, { ms: 200, ask: 'name?' }, { ms: 5000, log: 'heard' }, { ms: 60_000 });
    const answered = async (at: Offset, text: string): Promise<void> => {
      const asked = (): readonly unknown[] => questionsOf(bench.stream(`r${at}`).messages);
      await bench.until(() => asked().length > 0);
      await answer(asked()[0], text);
    };
    await answered(a, 'Ada');
    await bench.until(() => bench.stream(`r${a}`).messages.length === 2);
    first.crash();
    const second = await bench.start({ config: { ...QUICK.config, drainMs: 100 } });
    await bench.until(() => bench.runs.length === 2);
    await bench.time.advance(1000);
    // The first one has asked, and still has to repeat its log line: this question is known to be the other's.
    const b = await converse(2, { ms: 100, ask: 'name?' }, { ms: 60_000 });
    await answered(b, 'Bob');
    await bench.time.advance(100);
    await bench.time.run(second.worker.stop());
    await bench.start(QUICK);
    // Now the second one is the first to ask.
    expect(textOf((await bench.ended(a)).messages.at(-1))).toBe('Bob');
    expect(textOf((await bench.ended(b)).messages.at(-1))).toBe('Ada');
  });

  it('[LIM-REPEAT] the same call under another id is another call, and under its own id it is recognized for a minute: by a later owner not after that', async () => {
    const first = await openWith(3);
    await bench.ended(await bench.call('k', 1, 'effect', { token: 't' }));
    await bench.ended(await bench.call('k', 2, 'effect', { token: 't' }));
    expect(ran()).toEqual(['effect t', 'effect t']);
    await bench.time.advance(LATER_MS);
    await bench.ended(await bench.call('k', 3, 'lookup'));
    await bench.time.advance(LATER_MS);
    first.crash();
    await bench.start(QUICK);
    await bench.ended(await bench.call('k', 1, 'effect', { token: 't' }));
    expect(ran()).toEqual(['effect t', 'effect t', 'lookup ', 'effect t']);
  });

  it('[LIM-EVICTED] a repetition runs if retention took the first call, which had run, before an owner met the repetition', async () => {
    const first = await openWith(4);
    const at = await bench.call('k', 1, 'effect', { token: 't' });
    await bench.ended(at);
    first.crash();
    const again = await bench.call('k', 1, 'effect', { token: 't' });
    bench.store.controls.evictBefore(INBOUND, again);
    await bench.start(QUICK);
    expect(textOf((await bench.ended(again)).messages[0])).toBe('effect t');
    expect(ran()).toEqual(['effect t', 'effect t']);
  });

  it('[LIM-PAST] if a size cap took all of events and nothing of inbound, what had ended ends once more, as lost; nothing runs again', async () => {
    const first = await openWith(23);
    const done = await bench.call('k', 1, 'effect', { token: 't' });
    await bench.ended(done);
    first.crash();
    bench.store.controls.evictBefore(EVENTS, bench.store.partition(EVENTS).bounds().end);
    await bench.start(QUICK);
    expect(errorOf((await bench.ended(done)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
    expect(ran()).toEqual(['effect t']);
    // Its client was given the result, and can no longer resume from before it.
    const next = await bench.call('k', 2, 'effect', { token: 'next' });
    expect(textOf((await bench.ended(next)).messages[0])).toBe('effect next');
  });

  it('[LIM-NAMES] two clients of one session share its request ids: the same id with another body is refused, with the same body it is one call', async () => {
    await openWith(5);
    const [one, two, other] = [
      await bench.call('k', 1, 'effect', { token: 't' }),
      await bench.call('k', 1, 'effect', { token: 't' }),
      await bench.call('k', 1, 'effect', { token: 'else' }),
    ];
    expect(textOf((await bench.ended(one)).messages[0])).toBe('effect t');
    expect(textOf((await bench.ended(two)).messages[0])).toBe('effect t');
    expect((await bench.ended(other)).messages).toMatchObject([{ id: 1, error: { code: -32600 } }]);
    expect(ran()).toEqual(['effect t']);
  });

  it('[LIM-TERMINATE] with terminate a session ends with its worker, though nothing ran in it', async () => {
    const first = await openWith(6, TERMINATE);
    first.crash();
    await bench.start(TERMINATE);
    await bench.until(() => bench.session('k').endReason === 'owner-lost');
    expect(errorOf((await bench.ended(await bench.call('k', 1, 'effect'))).messages[0])?.code).toBe('SESSION_ENDED');
  });

  it('[LIM-RESTORE] with restore a session goes on in a fresh server, which knows nothing of what the former one did for it', async () => {
    const first = await openWith(7);
    await bench.ended(await bench.call('k', 1, 'effect', { token: 't' }));
    first.crash();
    const { host } = await bench.start(QUICK);
    await bench.ended(await bench.call('k', 2, 'effect', { token: 'u' }));
    expect(host.opened[0]?.methods).toEqual(['initialize', 'notifications/initialized', 'tools/call']);
  });
});
