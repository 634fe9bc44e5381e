/** What producers say to the clients of sessions: once each, whoever dies. */
import fc from 'fast-check';
import { INBOUND_TYPE, makeRecord } from '@throughline/protocol';
import type { JsonRpcMessage, Offset } from '@throughline/protocol';
import type { Metrics } from '@throughline/telemetry';
import { noMetrics } from '@throughline/telemetry';
import { afterEach, describe, expect, it } from 'vitest';
import { DEAD_LETTER, EVENTS, INBOUND, openBench } from './testing/worker-bench.ts';
import type { Bench, BenchWorker, WorkerChoice } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const QUICK: WorkerChoice = { config: { heartbeatMs: 100, deadAfterMs: 400 } };

interface ProduceOptions {
  readonly session?: string;
  readonly name?: string;
  readonly untilMs?: number;
  readonly value?: string;
}

/** A message called `name` that says `data`. */
async function produce(
  data: string,
  { session = 'k', name = data.replaceAll(' ', '-'), untilMs, value }: ProduceOptions = {},
): Promise<Offset> {
  const message = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data } };
  const { offsets } = await bench.log.append(INBOUND, [
    makeRecord(INBOUND_TYPE.produced, session, value ?? JSON.stringify(message), {
      server: 'demo',
      idempotencyKey: name,
      until: untilMs === undefined ? null : String(untilMs),
    }),
  ]);
  return offsets[0] ?? -1;
}

const dataOf = (message: JsonRpcMessage): unknown =>
  'method' in message && message.method === 'notifications/message' ? message.params?.['data'] : undefined;
const said = (): readonly unknown[] => bench.stream('s').messages.flatMap((message) => dataOf(message) ?? []);

/** Counts what is dropped, by reason. */
function countDrops(): { readonly metrics: Metrics; readonly drops: Map<string, number> } {
  const drops = new Map<string, number>();
  const metrics: Metrics = {
    ...noMetrics,
    add(name, by, labels) {
      if (name !== 'throughline_worker_dropped_total') return;
      const reason = labels?.['reason'] ?? '';
      drops.set(reason, (drops.get(reason) ?? 0) + (by ?? 1));
    },
  };
  return { metrics, drops };
}

describe('a message of a producer', () => {
  it('[PRD-SAY] stands on the standalone stream of its session under the claim of the owner, in the order of inbound', async () => {
    bench = await openBench(1);
    await bench.start(QUICK);
    await bench.open('k');
    await bench.open('other');
    const at = await produce('one');
    await produce('two');
    await produce('elsewhere', { session: 'other' });
    await bench.until(() => said().length === 3);
    expect(said()).toEqual(['one', 'two', 'elsewhere']);
    const events = bench.accepted().filter(({ body }) => body.type === 'message' && body.stream === 's');
    expect(events.map(({ key }) => key)).toEqual(['k', 'k', 'other']);
    const claim = bench.accepted().find(({ body }) => body.type === 'claimed')?.offset;
    expect(events[0]).toMatchObject({ owner: claim, body: { answers: at, end: false } });
  });

  it('[PRD-ONCE] of one name is said once in its session, and again in another', async () => {
    const { metrics, drops } = countDrops();
    bench = await openBench(2);
    await bench.start({ ...QUICK, metrics });
    await bench.open('k');
    await bench.open('other');
    await produce('first', { name: 'n' });
    await produce('second', { name: 'n' });
    await produce('third', { name: 'n', session: 'other' });
    await bench.time.advance(45_000);
    await produce('fourth', { name: 'n' });
    await produce('last');
    await bench.until(() => said().includes('last'));
    expect(said()).toEqual(['first', 'third', 'last']);
    expect(drops.get('produced-again')).toBe(2);
  });

  it('[PRD-ONCE] is said once over takeovers, whether the dead owner had said it, had a checkpoint, or had neither', async () => {
    bench = await openBench(3);
    let owner = await bench.start(QUICK);
    await bench.open('k');
    // Nothing but the message itself has a successor read so far back.
    await bench.time.advance(70_000);
    await produce('one');
    await bench.until(() => said().length === 1);
    for (const wait of [0, 30_000]) {
      await bench.time.advance(wait);
      owner.crash();
      await produce('one');
      await produce(`new after ${wait}`);
      owner = await bench.start(QUICK);
      await bench.until(() => said().includes(`new after ${wait}`));
      await produce('one');
      await produce(`end of ${wait}`);
      await bench.until(() => said().includes(`end of ${wait}`));
    }
    expect(said()).toEqual(['one', 'new after 0', 'end of 0', 'new after 30000', 'end of 30000']);
  });

  it('[PRD-LATE] that the log took after its time is not said: nobody may know any more that it was said before', async () => {
    const { metrics, drops } = countDrops();
    bench = await openBench(4);
    await bench.start({ ...QUICK, metrics });
    await bench.open('k');
    const { timestampMs } = await bench.log.append(INBOUND, [makeRecord(INBOUND_TYPE.probe, null, null, {})]);
    await produce('in time', { untilMs: timestampMs + 50_000 });
    await bench.time.advance(70_000);
    await produce('late', { name: 'in-time', untilMs: timestampMs + 50_000 });
    await produce('last');
    await bench.until(() => said().includes('last'));
    expect(said()).toEqual(['in time', 'last']);
    expect(drops.get('produced-late')).toBe(1);
  });

  it('[PRD-ENDED] to a session that ended, or that nobody knows, is dropped and counted', async () => {
    const { metrics, drops } = countDrops();
    bench = await openBench(5);
    await bench.start({ ...QUICK, metrics });
    await bench.open('k');
    await bench.open('other');
    await bench.end('k');
    await produce('to the ended');
    await produce('to nobody', { session: 'stranger' });
    await produce('last', { session: 'other' });
    await bench.until(() => said().includes('last'));
    expect(said()).toEqual(['last']);
    expect(drops.get('produced-no-session')).toBe(2);
  });

  it('[PRD-ENDED] that comes to a session of which the server must end with its owner is not said by the successor', async () => {
    bench = await openBench(6);
    const first = await bench.start({ ...QUICK, onOwnerLoss: 'terminate' });
    await bench.open('k');
    first.crash();
    await produce('too late');
    await bench.start({ ...QUICK, onOwnerLoss: 'terminate' });
    await bench.until(() => bench.session('k').endReason !== null);
    await bench.time.advance(1000);
    expect(said()).toEqual([]);
  });

  it('[PRD-NOTIFY] that is no notification is copied to dead-letter and stops nothing', async () => {
    bench = await openBench(7);
    await bench.start(QUICK);
    await bench.open('k');
    const values = ['{', '{"jsonrpc":"2.0","id":1,"method":"ping"}', '{"jsonrpc":"2.0","id":1,"result":{}}'];
    for (const [index, value] of values.entries()) await produce(`bad ${index}`, { value });
    await produce('last');
    await bench.until(() => said().includes('last') && bench.records(DEAD_LETTER).length === 3);
    expect(said()).toEqual(['last']);
  });

  it('[PRD-NOTIFY] is said to a session whose instance was unloaded, and wakes no server', async () => {
    bench = await openBench(8);
    const first = await bench.start(QUICK);
    await bench.open('k');
    first.crash();
    await bench.start(QUICK);
    await produce('one');
    await bench.until(() => said().length === 1);
    expect(bench.runs).toEqual([]);
  });

  it('[PRD-IN-DOUBT] is not said by an owner that cannot know any more whether it was', async () => {
    const { metrics, drops } = countDrops();
    bench = await openBench(9);
    const first = await bench.start(QUICK);
    await bench.open('k');
    await produce('one');
    await bench.until(() => said().length === 1);
    first.crash();
    bench.store.controls.evictBefore(EVENTS, (await bench.log.bounds(EVENTS)).end);
    await bench.start({ ...QUICK, metrics });
    await bench.open('other');
    await produce('two');
    await bench.until(() => said().includes('two'));
    expect(said()).toEqual(['two']);
    expect(drops.get('produced-in-doubt')).toBe(1);
  });

  it('[PRD-ONCE] whatever dies, each name that was appended in time is said exactly once, in the order of the first copies', async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ do: fc.constant('say' as const), name: fc.nat(5) }) },
      { weight: 2, arbitrary: fc.constant({ do: 'crash' as const }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 6000 }) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.nat(1e6), fc.array(step, { minLength: 4, maxLength: 14 }), async (seed, steps) => {
        bench = await openBench(seed);
        let owner: BenchWorker = await bench.start(QUICK);
        await bench.open('k');
        const names: string[] = [];
        for (const each of steps) {
          if (each.do === 'say') {
            const name = `n${each.name}`;
            if (!names.includes(name)) names.push(name);
            await produce(name);
          } else if (each.do === 'wait') await bench.time.advance(each.ms);
          else {
            owner.crash();
            owner = await bench.start(QUICK);
          }
        }
        await produce('last');
        await bench.until(() => said().includes('last'));
        expect(said()).toEqual([...names, 'last']);
        await bench.dispose();
      }),
      { numRuns: 25 },
    );
  }, 120_000);
});
