import { afterAll, beforeAll, describe } from 'vitest';
import { describeLogConformance } from '../conformance/index.ts';
import type { Log } from '../port.ts';
import { systemClock } from '../system.ts';
import type { KafkaBench } from './testing/kafka-bench.ts';
import { brokersForTests, openKafkaBench } from './testing/kafka-bench.ts';

const brokers = brokersForTests();

describe.skipIf(brokers === null)('on a broker', () => {
  let bench: KafkaBench;
  beforeAll(async () => {
    bench = await openKafkaBench(brokers ?? []);
  });
  afterAll(() => bench.dispose());

  describeLogConformance('kafka', () =>
    Promise.resolve({
      clock: systemClock,
      groupMs: 15_000,
      modelRuns: 15,
      isDurable: true,
      open: () => bench.open({ sessionTimeoutMs: 2000 }),
      dispose: () => bench.closeLogs(),
      evict: (ref, before) => bench.evict(ref, before),
      compact: (topic) => bench.compact(topic),
      grow: (partitions) => bench.grow(partitions),
      failAppends(log: Log, fault) {
        bench.controls(log).inject(fault);
        return Promise.resolve();
      },
      crash(log: Log) {
        bench.controls(log).crash();
        return Promise.resolve();
      },
    }),
  );
});
