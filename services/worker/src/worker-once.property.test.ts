/** At most once, and ended exactly once, whenever an owner dies, sleeps or is slow. */
import { describe, expect, it } from 'vitest';
import { sleep } from '@throughline/log';
import type { Log } from '@throughline/log';
import type { MemoryLog } from '@throughline/log/memory';
import type { Offset } from '@throughline/protocol';
import { createSeededRandom } from '@throughline/testkit';
import { progressOf } from './testing/messages.ts';
import { openBench } from './testing/worker-bench.ts';
import type { Bench, PostOptions, WorkerChoice } from './testing/worker-bench.ts';

const QUICK = { heartbeatMs: 50, deadAfterMs: 200, checkpointMs: 40, drainMs: 200 };
const STORE = { leaseMs: 150 };
const OLD = { version: '2025-03-26' };
const LIMIT: Readonly<Record<string, number>> = { effect: 1, countdown: 1, hang: 1, upsert: 2, lookup: 2 };

const call = (id: number, name: string, args: object): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { progressToken: id } },
});

/** What holds for every history: streams end once, progress has no gap and no repeat, effects happen at most once. */
function checkHistory(bench: Bench, streams: readonly Offset[], hint: string): void {
  for (const at of streams) {
    const seen = bench.stream(`r${at}`);
    expect(seen, `${hint}: r${at}`).toMatchObject({ ends: 1, late: 0 });
    const byToken = new Map<unknown, unknown[]>();
    for (const message of seen.messages) {
      if (!('method' in message)) continue;
      const token = message.params?.['progressToken'];
      byToken.set(token, [...(byToken.get(token) ?? []), ...progressOf([message])]);
    }
    for (const [token, values] of byToken)
      expect(values, `${hint}: progress ${String(token)} on r${at}`).toEqual(values.map((_value, index) => index + 1));
  }
  const times = new Map<string, number>();
  for (const { tool, session, token } of bench.runs) {
    const name = `${tool} ${session} ${token}`;
    times.set(name, (times.get(name) ?? 0) + 1);
    expect(times.get(name), `${hint}: runs of ${name}`).toBeLessThanOrEqual(LIMIT[tool] ?? 1);
  }
}

/** What clients do: every kind of request once or twice, without waiting for answers. Resolves with the streams to expect. */
async function runClients(bench: Bench, pauseMs: () => number): Promise<readonly Offset[]> {
  const streams: Offset[] = [];
  const post = async (...args: Parameters<Bench['post']>): Promise<void> => {
    const [at = -1] = await bench.post(...args);
    const messages = Array.isArray(args[1]) ? args[1] : [args[1]];
    if (messages.some((message) => 'id' in (message as object) && 'method' in (message as object))) streams.push(at);
    await bench.time.advance(pauseMs());
  };
  const open = async (name: string, options: PostOptions = {}): Promise<string> => {
    for (let attempt = 1; ; attempt++) {
      const key = `${name}${attempt}`;
      // A client whose session was lost while it began begins another.
      const isOpen = await bench.open(key, options).then(
        () => true,
        () => attempt > 5,
      );
      if (isOpen) return key;
    }
  };
  const k = await open('k');
  const b = await open('b', OLD);
  await post(k, call(1, 'effect', { token: '1', ms: 5 }));
  await post(k, call(2, 'countdown', { token: '2', count: 4, ms: 15 }));
  await post(k, call(3, 'upsert', { token: '3', ms: 10 }));
  await post(k, call(2, 'countdown', { token: '2', count: 4, ms: 15 }));
  const batch = [
    call(4, 'effect', { token: '4' }),
    { jsonrpc: '2.0', method: 'notifications/x' },
    call(5, 'effect', { token: '5', ms: 20 }),
  ];
  await post(b, batch, OLD);
  await post(k, call(6, 'hang', { token: '6' }));
  await post(k, call(1, 'effect', { token: '1', ms: 5 }));
  await post(k, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 6 } });
  await post(b, batch, OLD);
  await post(k, call(7, 'lookup', { token: '7', ms: 10 }));
  await post(b, call(8, 'effect', { token: '8', ms: 30 }), OLD);
  await bench.end(b);
  await post(k, call(9, 'effect', { token: '9' }));
  return streams;
}

async function endAll(bench: Bench, streams: readonly Offset[]): Promise<void> {
  for (const at of streams) await bench.ended(at);
  await bench.time.advance(3000);
}

describe.each(['restore', 'terminate'] as const)('an owner of sessions to %s', (onOwnerLoss) => {
  it.each(['stored', 'lost'])(
    '[WRK-ONCE] [WRK-CHECKPOINT] [WRK-SETTLE] may die at any of its appends (%s)',
    async (fate) => {
      for (let dieAt = 1; ; dieAt++) {
        const bench = await openBench(dieAt, STORE);
        let appends = 0;
        let hasDied = false;
        const first = bench.starting({
          config: QUICK,
          onOwnerLoss,
          wrap: (log) => ({
            ...log,
            append: async (to, records) => {
              if (to.topic === 'meta' && records.some(({ key }) => key?.[0] === 119)) return log.append(to, records);
              if (++appends !== dieAt) return log.append(to, records);
              if (fate === 'stored') await log.append(to, records);
              hasDied = true;
              bench.time.kill(first.process);
              log.crash();
              return new Promise(() => undefined);
            },
          }),
        });
        first.started.catch(() => undefined);
        await bench.time.advance(100);
        const second = bench.starting({ config: QUICK, onOwnerLoss });
        second.started.catch(() => undefined);
        const streams = await runClients(bench, () => 10);
        await endAll(bench, streams);
        checkHistory(bench, streams, `death at append ${dieAt}, ${fate}, ${onOwnerLoss}`);
        await bench.dispose();
        bench.time.kill(second.process);
        if (!hasDied) {
          expect(dieAt).toBeGreaterThan(30);
          return;
        }
      }
    },
  );
});

describe('random histories', () => {
  const seeds = Array.from({ length: 60 }, (_value, index) => index + 1);
  it.each(seeds)(
    '[WRK-ONCE] [WRK-WRITER] [WRK-SUCCESSION] crashes, pauses, slow and uncertain appends (seed %d)',
    async (seed) => {
      const bench = await openBench(seed, STORE);
      const random = createSeededRandom(seed);
      const nodes: { process: string; log: MemoryLog; isDead: boolean }[] = [];
      const slowness = random.unit() < 0.5 ? 0 : 30;
      const choice: WorkerChoice = {
        config: { ...QUICK, appendTimeoutMs: 300 },
        wrap: (log): Log => ({
          ...log,
          append: async (to, records) => {
            if (slowness > 0 && random.unit() < 0.2) await sleep(bench.time.clock(), random.unit() * slowness);
            log.failAppends(fault(random.unit()));
            try {
              return await log.append(to, records);
            } finally {
              log.failAppends(null);
            }
          },
        }),
      };
      const add = (): void => {
        const { process, log, started } = bench.starting(choice);
        started.catch(() => undefined);
        nodes.push({ process, log, isDead: false });
      };
      add();
      add();
      const disturb = (): void => {
        const node = nodes[random.below(nodes.length)];
        if (node === undefined || node.isDead) return;
        const chance = random.unit();
        if (chance < 0.25) {
          node.isDead = true;
          bench.time.kill(node.process);
          node.log.crash();
          add();
        } else if (chance < 0.5) {
          bench.time.pause(node.process);
          bench.time.clock().setTimer(random.unit() * 800, () => {
            bench.time.resume(node.process);
          });
        }
      };
      const streams = await runClients(bench, () => {
        disturb();
        return random.unit() * 60;
      });
      for (const { process } of nodes) bench.time.resume(process);
      await endAll(bench, streams);
      checkHistory(bench, streams, `seed ${seed}`);
      for (const { process, log } of nodes) {
        bench.time.kill(process);
        log.crash();
      }
      await bench.dispose();
    },
  );
});

function fault(chance: number): 'refused' | 'unknown-stored' | 'unknown-lost' | null {
  if (chance < 0.02) return 'refused';
  if (chance < 0.025) return 'unknown-stored';
  return chance < 0.03 ? 'unknown-lost' : null;
}
