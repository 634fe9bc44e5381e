/** One gateway and one worker under virtual time, a client's script, and one wait that hangs. */
import { GatewayConfigSchema, startGatewayCore } from '@throughline/gateway';
import type { GatewayCore } from '@throughline/gateway';
import { sleep } from '@throughline/log';
import type { Clock, Random } from '@throughline/log';
import { createMemoryStore, openMemoryLog } from '@throughline/log/memory';
import { noMetrics, silentLogger } from '@throughline/telemetry';
import { createVirtualTime } from '@throughline/testkit';
import { startWorker, WorkerConfigSchema } from '@throughline/worker';
import type { Worker } from '@throughline/worker';
import { CutClient } from './client.ts';
import type { Outcome } from './client.ts';
import { cutHost, cutLog } from './cut-parts.ts';
import { createCutter, OUTAGE_MS } from './cutter.ts';
import type { Cut } from './cutter.ts';

/** Longest time, in virtual milliseconds, for each thing that somebody waits for. */
export const BOUNDS = {
  /** Start of gateway and worker, or their failure. */
  startMs: 80_000,
  /** A step of the client, from its first byte to what it was told: less than the 60 s that SDK clients wait. */
  stepMs: 50_000,
  /** Drain and stop of a gateway: its drain time, 2 s, and 2 s. */
  gatewayStopMs: 4000,
  /** Its drain time, 10 s, and 35 s. */
  workerStopMs: 45_000,
} as const;

export interface CutRun {
  readonly waits: readonly string[];
  /** How many of them had begun when the client was done. */
  readonly scriptWaits: number;
  /** What was waited for longer than it may be, or was told badly. */
  readonly faults: readonly string[];
  readonly steps: readonly { readonly name: string; readonly ms: number; readonly outcome: Outcome | null }[];
  readonly startMs: number;
  readonly stopMs: { readonly gateway: number; readonly worker: number };
}

const SECRET = new Uint8Array(32).fill(7);
/** After which everybody has given up what hung, and taken up what came after. */
const QUIET_MS = 120_000;
const LONGEST_MS = 3600_000;

/** A clock that knows which of its timers wait. */
function countTimers(clock: Clock): { readonly clock: Clock; waiting(): number } {
  const waiting = new Set<object>();
  return {
    waiting: () => waiting.size,
    clock: {
      wallMs: () => clock.wallMs(),
      monoMs: () => clock.monoMs(),
      setTimer(ms, run) {
        const timer = {};
        waiting.add(timer);
        const cancel = clock.setTimer(ms, () => {
          waiting.delete(timer);
          run();
        });
        return () => {
          waiting.delete(timer);
          cancel();
        };
      },
    },
  };
}

export async function runCut(cut: Cut | null): Promise<CutRun> {
  const time = createVirtualTime({ seed: 1 });
  const random: Random = time.random;
  const cutter = createCutter(time.clock('dependencies'), cut);
  const store = createMemoryStore({ clock: time.clock('store'), partitions: 1, clusterId: 'cut' });
  const faults: string[] = [];
  const steps: { name: string; ms: number; outcome: Outcome | null }[] = [];
  const onRejection = (reason: unknown): void => {
    faults.push(`unhandled rejection: ${String(reason)}`);
  };
  process.on('unhandledRejection', onRejection);

  const deadlines = time.clock('deadlines');
  /** What `work` comes to within `ms`; `null` and a fault if it hangs or rejects. */
  const within = async <T>(what: string, work: Promise<T>, ms: number): Promise<T | null> => {
    const over = new AbortController();
    const late = sleep(deadlines, ms, over.signal).then(() => {
      if (!over.signal.aborted && (isJudged || what.startsWith('stop')))
        faults.push(`${what} hangs: not over within ${ms} ms`);
      return null;
    });
    try {
      return await Promise.race([work, late]);
    } catch (error) {
      faults.push(`${what} rejected: ${String(error)}`);
      return null;
    } finally {
      over.abort();
    }
  };

  const gatewayTimers = countTimers(time.clock('gateway'));
  const workerTimers = countTimers(time.clock('worker'));
  const client = new CutClient(time.clock('client'));

  let isJudged = true;
  let startMs = 0;
  let gatewayStopMs = 0;
  let workerStopMs = 0;
  let scriptWaits = 0;
  const deps = { random, logger: silentLogger, metrics: noMetrics };
  const openGateway = async (): Promise<GatewayCore> => {
    const { clock } = gatewayTimers;
    const log = cutLog(openMemoryLog(store, { clock: time.clock('gateway-log') }), 'gateway', cutter);
    return startGatewayCore(GatewayConfigSchema.parse({ servers: ['demo'], secrets: [SECRET] }), {
      ...deps,
      clock,
      log,
    });
  };
  const openWorker = async (): Promise<Worker> => {
    const { clock } = workerTimers;
    const log = cutLog(openMemoryLog(store, { clock: time.clock('worker-log') }), 'worker', cutter);
    const config = WorkerConfigSchema.parse({ servers: { demo: { stdio: 'cut' } } });
    return startWorker(config, { ...deps, clock, log, hosts: new Map([['demo', cutHost('worker', clock, cutter)]]) });
  };
  const ends: string[] = [];
  const failed = (error: unknown): null => {
    ends.push(String(error));
    return null;
  };
  const starting = Promise.all([openGateway().catch(failed), openWorker().catch(failed)]);
  // While nothing answers nobody can be told anything.
  const stepMs = BOUNDS.stepMs + (cut?.hang === 'outage' ? OUTAGE_MS : 0);
  const step = async (name: string, work: () => Promise<Outcome>): Promise<Outcome | null> => {
    const at = time.nowMs();
    const outcome = await within(name, work(), stepMs);
    if (!isJudged) return null;
    steps.push({ name, ms: time.nowMs() - at, outcome });
    if (outcome?.kind === 'fault') faults.push(`${name}: ${outcome.why}`);
    return outcome;
  };
  const main = async (): Promise<void> => {
    const [gateway, worker] = (await within('start', starting, BOUNDS.startMs)) ?? [null, null];
    client.gateway = gateway;
    startMs = time.nowMs();
    if (gateway !== null && worker !== null) {
      const scripted = script(client, step);
      // A log that never answers again answers no call: then it is the end of the processes that must not hang.
      if (cut?.hang === 'for-good') {
        await Promise.race([scripted, cutter.came]);
        isJudged = false;
      } else await scripted;
      scriptWaits = cutter.waits.length;
      if (cut !== null && cut.hang !== 'for-good' && cutter.hasCome()) await serveAnother();
    } else if (cut === null) faults.push(`nothing started: ${ends.join(', ')}`);
    const stopAt = time.nowMs();
    const stopGateway = async (): Promise<void> => {
      await gateway?.drain();
      await gateway?.stop();
    };
    await within('stop of the gateway', stopGateway(), BOUNDS.gatewayStopMs);
    gatewayStopMs = time.nowMs() - stopAt;
    const workerStopAt = time.nowMs();
    await within('stop of the worker', worker?.stop() ?? Promise.resolve(), BOUNDS.workerStopMs);
    workerStopMs = time.nowMs() - workerStopAt;
    // What was given up still has its deadline, and nothing beyond it.
    await sleep(deadlines, QUIET_MS);
    if (gatewayTimers.waiting() > 0) faults.push(`the gateway leaves ${gatewayTimers.waiting()} timers`);
    if (workerTimers.waiting() > 0) faults.push(`the worker leaves ${workerTimers.waiting()} timers`);
  };
  /** Whatever hung: a new client is served. */
  const serveAnother = async (): Promise<void> => {
    await sleep(deadlines, QUIET_MS);
    client.session = undefined;
    const begun = await step('another initialize', () => client.request(90, 'initialize', INITIALIZE));
    if (begun?.kind !== 'result') faults.push('another client is not served');
    else {
      const called = await step('another call', () => client.call(91, 'count'));
      if (called?.kind !== 'result') faults.push('another call is not answered');
    }
  };
  try {
    await time.run(main(), LONGEST_MS);
  } finally {
    process.off('unhandledRejection', onRejection);
  }
  return {
    waits: cutter.waits,
    scriptWaits,
    faults,
    steps,
    startMs,
    stopMs: { gateway: gatewayStopMs, worker: workerStopMs },
  };
}

const INITIALIZE = {
  protocolVersion: '2025-11-25',
  capabilities: { elicitation: {} },
  clientInfo: { name: 'cut', version: '1' },
};

/** Everything that a client does, one after the other. It ends where its session is said to be over. */
async function script(
  client: CutClient,
  step: (name: string, work: () => Promise<Outcome>) => Promise<Outcome | null>,
): Promise<void> {
  let isOver = false;
  const next = async (name: string, work: () => Promise<Outcome>): Promise<void> => {
    if (isOver) return;
    const outcome = await step(name, work);
    isOver = outcome === null || (outcome.kind === 'error' && (outcome.isOver || name === 'initialize'));
  };
  await next('initialize', () => client.request(1, 'initialize', INITIALIZE));
  await next('initialized', () => client.tell({ method: 'notifications/initialized' }));
  await next('listen', () => client.listen());
  await next('list', () => client.request(2, 'tools/list', {}));
  await next('call with progress', () => client.call(3, 'count'));
  await next('call that asks', () =>
    client.call(4, 'ask', {
      onMessage: ({ id, method }) => {
        if (method === 'elicitation/create')
          void answerUntilTaken(client, { id, result: { action: 'accept', content: {} } });
      },
    }),
  );
  await next('call that is cancelled', () => {
    const cancel = { method: 'notifications/cancelled', params: { requestId: 5 } };
    const refused = Promise.withResolvers<Outcome>();
    const called = client.call(5, 'wait', {
      onMessage: () => {
        void answerUntilTaken(client, cancel).then((told) => {
          if (told.kind !== 'done') refused.resolve(told);
        });
      },
    });
    return Promise.race([called, refused.promise]);
  });
  await next('call that is resumed', () => client.call(6, 'count', { leaveAfter: 2 }));
  await next('delete', () => client.end());
}

/** As a client does that wants to be heard: again after a 503 or 504. */
async function answerUntilTaken(client: CutClient, message: object): Promise<Outcome> {
  for (let tries = 0; ; tries++) {
    const told = await client.tell(message);
    if (told.kind !== 'error' || told.isOver || tries === 3) return told;
  }
}
