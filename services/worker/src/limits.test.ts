/** What is not promised about tools and sessions: each limit of docs/reference/guarantees.md that a worker shows. */
import { afterEach, describe, expect, it } from 'vitest';
import { errorOf, textOf } from './testing/messages.ts';
import { INBOUND, openBench } from './testing/worker-bench.ts';
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
