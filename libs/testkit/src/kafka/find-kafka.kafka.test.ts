import { describe, expect, it } from 'vitest';
import { findKafka } from './find-kafka.ts';
import type { LocalKafka } from './local-kafka.ts';

const local: LocalKafka = {
  brokers: ['127.0.0.1:1'],
  listener: () => [],
  jars: '',
  kill: () => Promise.resolve(),
  pause: () => undefined,
  resume: () => undefined,
  stop: () => Promise.resolve(),
  restart: () => Promise.resolve(),
  output: () => '',
};
const launch = () => Promise.resolve({ kafka: local });
const cannot = () => Promise.reject(new Error('no java'));

describe('the Kafka of a test run', () => {
  it('[KAFKA-LANE] KAFKA_BROKERS comes first, then a broker of our own', async () => {
    expect(await findKafka(cannot, { KAFKA_BROKERS: 'a:1,b:2' })).toMatchObject({
      from: 'environment',
      brokers: ['a:1', 'b:2'],
    });
    expect(await findKafka(launch, {})).toMatchObject({ from: 'local', brokers: ['127.0.0.1:1'] });
  });

  it('[KAFKA-LANE] without any broker the run says why and goes on, and fails where REQUIRE_KAFKA=1', async () => {
    const said: string[] = [];
    expect(await findKafka(cannot, {}, (text) => said.push(text))).toEqual({ from: 'none', reason: 'no java' });
    expect(said.join('')).toMatch(/SKIPPED.*no java/);
    await expect(findKafka(cannot, { REQUIRE_KAFKA: '1' })).rejects.toThrow('no java');
  });
});
