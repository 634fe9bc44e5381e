import { describe, expect, it } from 'vitest';
import { findDocker } from './find-docker.ts';
import { findKafka } from './find-kafka.ts';
import type { KafkaLaunchers } from './find-kafka.ts';
import { findClusterKind } from './start-cluster.ts';

const stop = () => Promise.resolve();
const cannot = (reason: string) => () => Promise.reject(new Error(reason));
const absent = () => Promise.resolve(null);
const both: KafkaLaunchers = {
  container: () => Promise.resolve({ address: '127.0.0.1:1', stop }),
  local: () => Promise.resolve({ brokers: ['127.0.0.1:2'], stop }),
};
const none: KafkaLaunchers = { container: absent, local: cannot('no java') };
const quiet = () => undefined;

describe('the Kafka of a test run', () => {
  it('[KAFKA-LANE] KAFKA_BROKERS comes first, then a container, then a process', async () => {
    expect(await findKafka(both, { KAFKA_BROKERS: 'a:1,b:2' }, quiet)).toMatchObject({
      from: 'environment',
      brokers: ['a:1', 'b:2'],
    });
    expect(await findKafka(both, {}, quiet)).toMatchObject({ from: 'container', brokers: ['127.0.0.1:1'] });
    for (const container of [absent, cannot('no image')])
      expect(await findKafka({ ...both, container }, {}, quiet)).toMatchObject({
        from: 'local',
        brokers: ['127.0.0.1:2'],
      });
  });

  it('[KAFKA-LANE] without any broker the run says why and goes on, and fails where REQUIRE_KAFKA=1', async () => {
    const said: string[] = [];
    expect(await findKafka(none, {}, (text) => said.push(text))).toEqual({
      from: 'none',
      reason: 'no Docker engine answers; no java',
    });
    expect(said.join('')).toMatch(/SKIPPED.*no Docker engine answers; no java/);
    await expect(findKafka(none, { REQUIRE_KAFKA: '1' }, quiet)).rejects.toThrow('no java');
  });

  it('[KAFKA-LANE] KAFKA_VERSION names another version, which runs as a process whatever containers there are', async () => {
    expect(await findKafka(both, { KAFKA_VERSION: '3.9.1' }, quiet)).toMatchObject({ from: 'local' });
    expect(await findKafka(both, {}, quiet)).toMatchObject({ from: 'container' });
  });

  it('[KAFKA-LANE] where REQUIRE_CONTAINERS=1 nothing stands in for a container', async () => {
    const environment = { REQUIRE_CONTAINERS: '1', KAFKA_BROKERS: 'a:1' };
    expect(await findKafka(both, environment, quiet)).toMatchObject({ from: 'container' });
    await expect(findKafka({ ...both, container: absent }, environment, quiet)).rejects.toThrow('no Docker engine');
    await expect(findKafka({ ...both, container: cannot('no image') }, environment, quiet)).rejects.toThrow('no image');
  });
});

describe('several brokers', () => {
  const java = () => Promise.resolve();
  const yes = () => Promise.resolve(true);
  const no = () => Promise.resolve(false);

  it('[KAFKA-LANE] containers come first, then processes, then the tests are skipped and say so', async () => {
    const said: string[] = [];
    const say = (text: string) => said.push(text);
    expect(await findClusterKind({ containers: yes, java }, {}, say)).toBe('container');
    expect(await findClusterKind({ containers: no, java }, {}, say)).toBe('local');
    expect(await findClusterKind({ containers: cannot('no image'), java }, {}, say)).toBe('local');
    expect(said).toEqual([]);
    expect(await findClusterKind({ containers: no, java: cannot('no java') }, {}, say)).toBeNull();
    expect(said.join('')).toMatch(/SKIPPED.*no Docker engine answers; no java/);
  });

  it('[KAFKA-LANE] what is required and cannot be had fails', async () => {
    const without = { containers: no, java: cannot('no java') };
    await expect(findClusterKind(without, { REQUIRE_KAFKA: '1' }, quiet)).rejects.toThrow('no java');
    await expect(findClusterKind({ containers: no, java }, { REQUIRE_CONTAINERS: '1' }, quiet)).rejects.toThrow(
      'no Docker engine',
    );
  });
});

describe('the Docker engine of a test run', () => {
  const only = (working: string) => (host: string) => Promise.resolve(host === working);

  it('[KAFKA-LANE] a named engine is the only one asked; else the usual socket, then the private one', async () => {
    const environment = { THROUGHLINE_DOCKER_ROOT: '/srv/docker' };
    const usual = 'unix:///var/run/docker.sock';
    const own = 'unix:///srv/docker/docker.sock';
    expect(await findDocker(environment, () => Promise.resolve(true))).toBe(usual);
    expect(await findDocker(environment, only(own))).toBe(own);
    expect(await findDocker(environment, () => Promise.resolve(false))).toBeNull();
    expect(await findDocker({ ...environment, DOCKER_HOST: 'tcp://far:2375' }, only('tcp://far:2375'))).toBe(
      'tcp://far:2375',
    );
    expect(await findDocker({ ...environment, DOCKER_HOST: 'tcp://far:2375' }, only(own))).toBeNull();
  });

  it('[KAFKA-LANE] an engine that is not there does not answer', async () => {
    expect(await findDocker({ DOCKER_HOST: 'unix:///no/such/docker.sock' })).toBeNull();
    expect(await findDocker({ DOCKER_HOST: 'tcp://127.0.0.1:1' })).toBeNull();
  });
});
