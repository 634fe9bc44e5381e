import type { KafkaFacts, TopicFactsOf } from '@throughline/log/kafka';
import { describe, expect, it } from 'vitest';
import { releaseOf } from './diagnose-kafka.ts';
import { diagnose } from './diagnose.ts';
import type { Promises } from './diagnosed.ts';
import { DOCTOR_CHECKS } from './doctor-codes.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { renderFindings } from './doctor.ts';
import { NO_META } from './meta-facts.ts';
import type { EpochEntry } from './meta-facts.ts';
import type { Ownership, OwnerRow } from './owners.ts';
import type { PartitionFacts } from './partition-facts.ts';

const NOW = 1_800_000_000_000;
const DAY = 86_400_000;
const known = <T>(value: T) => ({ known: true, value }) as const;
const DENIED = { known: false, denied: true, message: 'denied' } as const;

const PROMISES: Promises = {
  windowMs: DAY,
  maxBodyBytes: 4 * 1024 ** 2,
  leaseMs: 8000,
  brokers: ['b1:9092'],
  prefix: 'p',
  cli: (name, own = []) => ['throughline', name, ...own, '--log kafka://b1:9092 --prefix p'].join(' '),
};

function topic(
  name: TopicFactsOf['topic'],
  settings: Record<string, string> = {},
  inSync = [1, 2, 3],
  leader = 1,
): TopicFactsOf {
  return {
    topic: name,
    name: `p.${name}`,
    partitions: known([{ partition: 0, leader, replicas: [1, 2, 3], inSync }]),
    settings: known(
      new Map(
        Object.entries({
          'min.insync.replicas': '2',
          'unclean.leader.election.enable': 'false',
          'max.message.bytes': '8388608',
          'retention.ms': String(DAY),
          ...settings,
        }),
      ),
    ),
  };
}

const KAFKA: KafkaFacts = {
  cluster: known({ clusterId: 'c', controller: 1 }),
  brokers: [{ node: 1, address: 'b1:9092', abilities: known({ softwareLevel: 25, clusterLevel: 25, missing: [] }) }],
  topics: [topic('inbound'), topic('events'), topic('sessions'), topic('meta'), topic('dead-letter')],
  group: known({ name: 'p.workers', state: 'Stable', members: [] }),
  brokerSettings: known(
    new Map([
      ['group.min.session.timeout.ms', '6000'],
      ['auto.create.topics.enable', 'false'],
    ]),
  ),
};

const EPOCH: EpochEntry = {
  token: 'aaaaaaaaaa',
  previous: null,
  reason: 'first start',
  clusterId: 'c/p',
  offset: 0,
  atMs: NOW - DAY,
  verdict: 'in-force',
};
const ROW: OwnerRow = {
  partition: 0,
  state: 'owned',
  worker: 'w-a',
  claim: 3,
  sinceMs: NOW - DAY,
  lag: 0,
  committed: 9,
  inboundEnd: 9,
  open: 0,
  oldestOpenMs: null,
  checkpoint: null,
  rivals: [],
  error: null,
};
const PARTITION: PartitionFacts = {
  partition: 0,
  events: { start: 0, end: 9 },
  inbound: { start: 0, end: 9 },
  owner: null,
  voidClaims: [],
  checkpoint: null,
  open: null,
  unreadable: 0,
};
const OWNERSHIP: Ownership = {
  meta: { ...NO_META, epochs: [EPOCH], inForce: EPOCH },
  living: new Set(['w-a']),
  skewMs: 12,
  rows: [ROW],
  facts: new Map([[0, PARTITION]]),
  isDenied: false,
};

const GOOD: DoctorFacts = {
  nowMs: NOW,
  kafka: KAFKA,
  differences: known([]),
  file: null,
  opened: known({ clusterId: 'c/p', driver: 'kafka', partitions: 1, maxRecordBytes: 8_000_000, retentionMs: DAY }),
  secrets: known({ secrets: [Uint8Array.from({ length: 32 }, (_, index) => index)], from: 'configuration' }),
  ownership: known(OWNERSHIP),
  spans: known([{ partition: 0, start: 100, end: 200, oldestMs: NOW - DAY - 1 }]),
  deadLetters: known({ count: 0, newestMs: null }),
};

function levels(facts: DoctorFacts, promises: Promises = PROMISES): Record<string, string> {
  const findings = diagnose(facts, promises);
  const all = Object.fromEntries(findings.map(({ code, level }) => [code, level]));
  expect(Object.keys(all), 'a code once').toHaveLength(findings.length);
  return all;
}

/** Findings that are not ok. */
function notOk(facts: DoctorFacts, promises: Promises = PROMISES): Record<string, string> {
  return Object.fromEntries(Object.entries(levels(facts, promises)).filter(([, level]) => level !== 'ok'));
}

const withKafka = (change: Partial<KafkaFacts>): DoctorFacts => ({ ...GOOD, kafka: { ...KAFKA, ...change } });
const withTopic = (changed: TopicFactsOf): DoctorFacts =>
  withKafka({ topics: KAFKA.topics.map((each) => (each.topic === changed.topic ? changed : each)) });
const withOwnership = (change: Partial<Ownership>): DoctorFacts => ({
  ...GOOD,
  ownership: known({ ...OWNERSHIP, ...change }),
});
const withRow = (change: Partial<OwnerRow>): DoctorFacts => withOwnership({ rows: [{ ...ROW, ...change }] });

describe('doctor', () => {
  it('[CLI-DOCTOR] where all is well every check of the log is made and is ok', () => {
    const all = levels(GOOD);
    expect(new Set(Object.values(all))).toEqual(new Set(['ok']));
    const expected = Object.entries(DOCTOR_CHECKS).flatMap(([code, { of }]) => (of === 'file' ? [] : [code]));
    expect(Object.keys(all).sort()).toEqual(expected.sort());
    const file = { ...GOOD, kafka: null, differences: null, file: { bytes: 1, maxBytes: 100 } };
    const ofFile = Object.entries(DOCTOR_CHECKS).flatMap(([code, { of }]) => (of === 'kafka' ? [] : [code]));
    expect(Object.keys(levels(file)).sort()).toEqual(ofFile.sort());
  });

  it('[CLI-DOCTOR] each thing that can be wrong with a cluster is found under its code, and nothing else', () => {
    expect(notOk(withKafka({ cluster: { known: false, denied: false, message: 'no' } }))).toEqual({
      'cluster-reachable': 'fail',
    });
    const broker = (abilities: KafkaFacts['brokers'][number]['abilities']) =>
      withKafka({ brokers: [{ node: 1, address: 'b1:9092', abilities }] });
    expect(notOk(broker(known({ softwareLevel: null, clusterLevel: null, missing: ['Fetch'] })))).toEqual({
      'broker-versions': 'fail',
    });
    expect(notOk(broker({ known: false, denied: false, message: 'timeout' }))).toEqual({ 'broker-versions': 'warn' });
    expect(notOk(withTopic({ ...topic('meta'), partitions: known(null) }))).toEqual({ 'topics-exist': 'fail' });
    expect(notOk(withTopic(topic('events', {}, [1, 2])))).toEqual({ 'replicas-in-sync': 'warn' });
    expect(notOk(withTopic(topic('events', {}, [1])))).toEqual({ 'replicas-in-sync': 'fail' });
    expect(notOk(withTopic(topic('events', {}, [1, 2, 3], -1)))).toEqual({ 'partitions-online': 'fail' });
    expect(notOk(withTopic(topic('meta', { 'unclean.leader.election.enable': 'true' })))).toEqual({
      'unclean-election': 'fail',
    });
    expect(notOk(withTopic(topic('inbound', { 'max.message.bytes': '1048576' })))).toEqual({ 'max-message': 'fail' });
    const one = {
      ...topic('events', { 'min.insync.replicas': '1' }),
      partitions: known([{ partition: 0, leader: 1, replicas: [1], inSync: [1] }]),
    };
    expect(notOk(withTopic(one))).toEqual({ replication: 'warn' });
    const settings = (entry: [string, string]) => withKafka({ brokerSettings: known(new Map([entry])) });
    expect(notOk(settings(['group.min.session.timeout.ms', '10000']))).toEqual({ 'group-timeouts': 'fail' });
    expect(notOk(settings(['auto.create.topics.enable', 'true']))).toEqual({ 'auto-create': 'warn' });
    expect(notOk(withKafka({ group: known({ name: 'g', state: 'Empty', members: [] }) }))).toEqual({ group: 'warn' });
    const set = (setting: string) =>
      notOk({ ...GOOD, differences: known([{ kind: 'set', topic: 'p.events', setting, from: 'a', to: 'b' }]) });
    expect(set('message.timestamp.type')).toEqual({ 'topic-settings': 'fail' });
    expect(set('segment.ms')).toEqual({ 'topic-settings': 'warn' });
  });

  it('[CLI-DOCTOR] each thing that can be wrong with a log is found under its code, and nothing else', () => {
    const opened = { known: false, denied: false, message: 'no' } as const;
    expect(notOk({ ...GOOD, opened })).toEqual({ 'log-opens': 'fail' });
    const file = (bytes: number) => notOk({ ...GOOD, kafka: null, differences: null, file: { bytes, maxBytes: 100 } });
    expect([file(80), file(81), file(96)]).toEqual([{}, { 'log-size': 'warn' }, { 'log-size': 'fail' }]);
    expect(notOk(withTopic(topic('events', { 'retention.ms': '1000' })))).toEqual({ retention: 'fail' });
    expect(notOk(withTopic(topic('inbound', { 'retention.ms': '1000' })))).toEqual({ retention: 'fail' });
    expect(notOk(withTopic(topic('inbound', { 'retention.ms': '-1' })))).toEqual({});
    const span = (start: number) =>
      notOk({ ...GOOD, spans: known([{ partition: 0, start, end: 200, oldestMs: NOW - DAY / 2 }]) });
    expect([span(0), span(1)]).toEqual([{}, { 'window-held': 'fail' }]);
    expect(notOk(withOwnership({ skewMs: 5001 }))).toEqual({ clock: 'warn' });
    expect(notOk(withOwnership({ skewMs: -60_001 }))).toEqual({ clock: 'fail' });
    expect(notOk(withOwnership({ skewMs: null }))).toEqual({ clock: 'unknown' });
    const secrets = (...all: Uint8Array[]) =>
      notOk({ ...GOOD, secrets: known({ secrets: all, from: 'configuration' }) });
    expect(secrets(new Uint8Array(32).fill(7))).toEqual({ secret: 'fail' });
    expect(secrets()).toEqual({ secret: 'unknown' });
    const epochs = (...all: EpochEntry[]) =>
      notOk(
        withOwnership({
          meta: { ...NO_META, epochs: all, inForce: all.find(({ verdict }) => verdict === 'in-force') ?? null },
        }),
      );
    expect(epochs()).toEqual({ epoch: 'warn', owners: 'unknown' });
    expect(epochs({ ...EPOCH, verdict: 'foreign' })).toEqual({ epoch: 'fail', owners: 'unknown' });
    expect(epochs({ ...EPOCH, previous: 'bbbbbbbbbb', atMs: NOW - 60_000 })).toEqual({ epoch: 'warn' });
    for (const state of ['none', 'released', 'gone'] as const)
      expect(notOk(withRow({ state }))).toEqual({ owners: 'fail' });
    expect(notOk(withRow({ state: 'contested' }))).toEqual({ owners: 'warn' });
    expect(notOk(withRow({ state: 'unknown', error: 'no leader' }))).toEqual({ owners: 'unknown' });
    expect(notOk(withRow({ open: 1, oldestOpenMs: NOW - 299_000 }))).toEqual({});
    expect(notOk(withRow({ open: 1, oldestOpenMs: NOW - 300_000 }))).toEqual({ lag: 'warn' });
    const facts = (change: Partial<PartitionFacts>) =>
      notOk(withOwnership({ facts: new Map([[0, { ...PARTITION, ...change }]]) }));
    const open = { count: 1, isMore: false, lowest: 3, lowestAtMs: NOW, offsets: [3] };
    expect(facts({ open: { ...open, mostAttempts: 1 } })).toEqual({});
    expect(facts({ open: { ...open, mostAttempts: 2 } })).toEqual({ poison: 'warn' });
    expect(facts({ unreadable: 1 })).toEqual({ poison: 'warn' });
    expect(notOk({ ...GOOD, deadLetters: known({ count: 2, newestMs: NOW }) })).toEqual({ 'dead-letters': 'warn' });
  });

  it('[CLI-DOCTOR-RIGHTS] what this user may not see is unknown, never a failure, and names the right to add', () => {
    const hidden = KAFKA.topics.map((each) => ({ ...each, partitions: DENIED, settings: DENIED }));
    const facts: DoctorFacts = {
      ...GOOD,
      kafka: { ...KAFKA, topics: hidden, group: DENIED, brokerSettings: DENIED },
      ...{ differences: DENIED, opened: DENIED, ownership: DENIED, spans: DENIED, deadLetters: DENIED },
    };
    const findings = diagnose(facts, PROMISES);
    expect(findings.filter(({ level }) => level === 'fail')).toEqual([]);
    const fixes = Object.fromEntries(
      findings.flatMap(({ code, level, fix }) => (level === 'unknown' ? [[code, fix]] : [])),
    );
    const acl = (operation: string, on: string) =>
      `kafka-acls.sh --bootstrap-server b1:9092 --add --allow-principal User:<you> --operation ${operation} ${on}`;
    const topics = '--topic p. --resource-pattern-type prefixed';
    expect(fixes).toMatchObject({
      'topics-exist': acl('Describe', topics),
      'topic-settings': acl('DescribeConfigs', topics),
      'unclean-election': acl('DescribeConfigs', topics),
      'group-timeouts': acl('DescribeConfigs', '--cluster'),
      group: acl('Describe', '--group p. --resource-pattern-type prefixed'),
      owners: acl('Read', topics),
    });
  });

  it('[CLI-DOCTOR] whatever cannot be seen, each finding that is not ok has a reason and a fix', () => {
    const away = { known: false, denied: false, message: 'not known within 30 s' } as const;
    const missing = KAFKA.topics.map((each) => ({ ...each, partitions: known(null), settings: away }));
    const blind = { secrets: away, ownership: away, spans: away, deadLetters: away };
    const cases: readonly DoctorFacts[] = [
      { ...GOOD, ...blind, differences: away, kafka: { ...KAFKA, group: away, brokerSettings: away } },
      { ...GOOD, ...blind, differences: null, kafka: { ...KAFKA, topics: missing, group: away, brokerSettings: away } },
      { ...GOOD, differences: known([{ kind: 'create', topic: 'p.meta', partitions: 1, replication: 3 }]) },
      { ...GOOD, ...blind, kafka: null, differences: null },
      { ...GOOD, kafka: { ...KAFKA, brokers: [{ node: 1, address: 'b1:9092', abilities: away }] } },
      withRow({ state: 'unknown', error: null }),
    ];
    for (const facts of cases) {
      const faulty = diagnose(facts, PROMISES).filter(({ level }) => level !== 'ok');
      expect(faulty).not.toEqual([]);
      for (const { code, what, fix } of faulty) {
        expect(what, code).toMatch(/\S/);
        expect(fix, code).toMatch(/\S/);
      }
    }
  });

  it('[CLI-DOCTOR] a finding that is not ok is followed by why it matters and by the fix, a command that can be copied', () => {
    const findings = diagnose(withTopic({ ...topic('meta'), partitions: known(null) }), PROMISES);
    const shown = renderFindings(findings);
    expect(shown).toMatch(
      /\nFAIL +topics-exist +missing: p\.meta\n +No role starts without its topics.*\n +fix: throughline topics apply --log kafka:\/\/b1:9092 --prefix p\n/,
    );
    expect(shown).toMatch(/\n22 ok, 0 warn, 1 fail, 0 unknown\n$/);
  });

  it('[CLI-DOCTOR] feature levels are told as releases', () => {
    expect([null, 3, 4, 20, 21, 25, 26, 33].map(releaseOf)).toEqual([
      ...['Kafka before 3.3', 'Kafka before 3.3', 'Kafka 3.3', 'Kafka 3.8', 'Kafka 3.9', 'Kafka 4.0'],
      ...['Kafka 4.1 or later', 'Kafka 4.1 or later'],
    ]);
  });
});
