/**
 * A broker that falls silent after the n-th message, for every n of a script that uses all of the driver: whatever was
 * under way ends by its own deadline. The driver's clock runs fast, so that its seconds are short.
 */
import process from 'node:process';
import { passwordOf, startProxiedKafka } from '@throughline/testkit/kafka';
import type { ProxiedKafka } from '@throughline/testkit/kafka';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Clock } from '../clock.ts';
import { readAll, textOf, textRecord } from '../conformance/records.ts';
import type { Log, Membership, PartitionRef } from '../port.ts';
import { systemClock } from '../system.ts';
import type { KafkaSasl } from './options.ts';
import { openKafkaLog } from './kafka-log.ts';
import { brokersForTests, openKafkaBench } from './testing/kafka-bench.ts';
import type { KafkaBench } from './testing/kafka-bench.ts';

/** Seconds of the driver in one of ours. */
const FASTER = 20;
const fast: Clock = {
  wallMs: () => systemClock.wallMs(),
  monoMs: () => systemClock.monoMs() * FASTER,
  setTimer: (ms, run) => systemClock.setTimer(ms / FASTER, run),
};

/** Longest time of each step, in milliseconds of the driver, and the codes that it may end with. */
const STEPS = {
  open: { ms: 25_000, codes: ['LOG_UNAVAILABLE'] },
  append: { ms: 12_000, codes: ['APPEND_REFUSED', 'APPEND_UNKNOWN'] },
  read: { ms: 25_000, codes: ['LOG_UNAVAILABLE'] },
  wait: { ms: 25_000, codes: ['LOG_UNAVAILABLE'] },
  bounds: { ms: 25_000, codes: ['LOG_UNAVAILABLE'] },
  join: { ms: 33_000, codes: ['LOG_UNAVAILABLE'] },
  commit: { ms: 15_000, codes: ['LOG_UNAVAILABLE'] },
  committed: { ms: 25_000, codes: ['LOG_UNAVAILABLE'] },
  leave: { ms: 20_000, codes: [] },
  close: { ms: 20_000, codes: [] },
} as const satisfies Record<string, { readonly ms: number; readonly codes: readonly string[] }>;
type Step = keyof typeof STEPS;

/** Every message in the deep lane, every eighth for every change. */
const IS_DEEP = process.env['DEEP'] === '1';
const EVENTS: PartitionRef = { topic: 'events', partition: 0 };
/** What a loaded machine may add, in its own time. */
const SLACK_MS = 1500 * FASTER;

describe.skipIf(brokersForTests() === null || process.env['KAFKA_BROKERS'] !== undefined)(
  'a broker that falls silent',
  () => {
    let broker: ProxiedKafka;
    let bench: KafkaBench;
    const sasl: KafkaSasl = { mechanism: 'plain', username: 'worker', password: passwordOf('worker') };
    beforeAll(async () => {
      broker = await startProxiedKafka({
        protocol: 'SASL_PLAINTEXT',
        overrides: {
          'listener.name.proxied.sasl.enabled.mechanisms': 'PLAIN,OAUTHBEARER',
          'listener.name.proxied.oauthbearer.sasl.jaas.config':
            'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
          'listener.name.proxied.plain.sasl.jaas.config': `org.apache.kafka.common.security.plain.PlainLoginModule required user_worker="${passwordOf('worker')}";`,
        },
      });
      bench = await openKafkaBench(broker.kafka.brokers);
    }, 120_000);
    afterAll(async () => {
      await bench.dispose();
      await broker.stop();
    });

    /** Runs the script until a step fails, then closes; what went wrong, and how each append ended. */
    const runScript = async (name: string, silentAfter: number | null, clock = fast) => {
      const faults: string[] = [];
      const appends = new Map<string, string>();
      let longest: readonly [Step, number] = ['open', 0];
      const step = async <T>(what: Step, work: () => Promise<T>): Promise<T | null> => {
        const at = fast.monoMs();
        let code = 'ok';
        let value: T | null = null;
        try {
          value = await work();
        } catch (error) {
          code = (error as { code?: string }).code ?? String(error);
          if (silentAfter === null || !(STEPS[what].codes as readonly string[]).includes(code))
            faults.push(`${name}: ${what} ended with ${code}`);
        }
        const ms = fast.monoMs() - at;
        if (ms > STEPS[what].ms + SLACK_MS) faults.push(`${name}: ${what} took ${Math.round(ms)} ms`);
        if (code !== 'ok' && ms > longest[1]) longest = [what, Math.round(ms)];
        if (what === 'append') appends.set(name, code);
        return code === 'ok' ? value : null;
      };
      broker.proxy.reset();
      broker.proxy.stopAfter(silentAfter);
      const log = await step('open', () =>
        openKafkaLog({
          brokers: [broker.address],
          clientId: 'throughline-waits',
          clock,
          prefix: bench.prefix,
          sasl,
          appendTimeoutMs: 10_000,
        }),
      );
      if (log === null) return { faults, appends, longest, frames: broker.proxy.messages };
      await useLog(log, name, step);
      await step('close', () => log.close());
      return { faults, appends, longest, frames: broker.proxy.messages };
    };

    const useLog = async (
      log: Log,
      name: string,
      step: <T>(what: Step, work: () => Promise<T>) => Promise<T | null>,
    ): Promise<void> => {
      const appended = await step('append', () => log.append(EVENTS, [textRecord(name)]));
      if (appended === null) return;
      const at = appended.offsets[0] ?? 0;
      if ((await step('read', () => log.read(EVENTS, at))) === null) return;
      if ((await step('wait', () => log.read(EVENTS, at + 1, { waitMs: 1000 }))) === null) return;
      if ((await step('bounds', () => log.bounds(EVENTS))) === null) return;
      const membership: Membership | null = await step('join', () =>
        log.join({ group: 'workers', member: name, onChange: () => undefined }),
      );
      if (membership === null) return;
      // One after the other, since what follows a step that failed would only wait as long again.
      const isCommitted =
        (await step('commit', async () => {
          await membership.commit(membership.assigned()[0] ?? 0, 0);
          return true;
        })) === true;
      if (isCommitted) await step('committed', () => log.committed('workers'));
      await step('leave', () => membership.leave());
    };

    it('[WAIT-KAFKA] after whichever message it is, each operation ends by its own deadline with its own code, and what is said to be refused is not in the log', async () => {
      // In ordinary time: a machine under load may be slower than deadlines that are so short.
      const undisturbed = await runScript('undisturbed', null, systemClock);
      expect(undisturbed.faults).toEqual([]);
      const messages = undisturbed.frames;
      // Connections, logins, look-ups, and one request and answer at least for each step.
      expect(messages).toBeGreaterThan(40);
      const faults: string[] = [];
      const appends = new Map<string, string>();
      let longest: readonly [Step, number] = ['open', 0];
      for (let after = IS_DEEP ? 0 : 4; after < messages; after += IS_DEEP ? 1 : 8) {
        const run = await runScript(`after-${after}`, after);
        faults.push(...run.faults);
        for (const [name, code] of run.appends) appends.set(name, code);
        if (run.longest[1] > longest[1]) longest = run.longest;
      }
      expect(faults).toEqual([]);
      const stored = (await readAll(await bench.open(), EVENTS, 0)).map(textOf);
      for (const [name, code] of appends) {
        const count = stored.filter((value) => value === name).length;
        if (code === 'ok') expect(count, name).toBe(1);
        else if (code === 'APPEND_REFUSED') expect(count, name).toBe(0);
        else expect(count, name).toBeLessThanOrEqual(1);
      }
      expect(new Set(appends.values())).toContain('ok');
    }, 300_000);

    it('[WAIT-KAFKA] a token that never comes holds up nobody for longer than a broker would', async () => {
      broker.proxy.stopAfter(null);
      const at = fast.monoMs();
      const opening = openKafkaLog({
        brokers: [broker.address],
        clientId: 'throughline-waits',
        clock: fast,
        prefix: bench.prefix,
        sasl: { mechanism: 'oauthbearer', token: () => new Promise<string>(() => undefined) },
      });
      await expect(opening).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
      expect(fast.monoMs() - at).toBeLessThan(STEPS.open.ms + SLACK_MS);
    });
  },
);
