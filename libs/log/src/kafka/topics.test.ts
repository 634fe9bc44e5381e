import { describe, expect, it } from 'vitest';
import { planTopics } from './topic-settings.ts';
import type { TopicState } from './topics.ts';
import { decideTopics } from './topics.ts';

const DAY_MS = 86_400_000;

const stateOf = (plans: ReturnType<typeof planTopics>): Map<string, TopicState> =>
  new Map(
    plans.map(({ name, partitions, replication, settings }) => [
      name,
      { partitions, replication, inSync: replication, offline: 0, settings },
    ]),
  );

/** The plan's topics, and one of them otherwise. */
const statesWith = (topic: string, change: Partial<TopicState>, settings: Record<string, string> = {}) => {
  const states = stateOf(planTopics());
  const is = states.get(topic)!;
  const changed = new Map([...is.settings, ...Object.entries(settings)]);
  return states.set(topic, { ...is, ...change, settings: changed });
};

describe('topics', () => {
  it('[KAFKA-TOPICS] the settings are these', () => {
    const common = {
      'min.insync.replicas': '2',
      'unclean.leader.election.enable': 'false',
      'message.timestamp.type': 'LogAppendTime',
      'max.message.bytes': '8388608',
      'compression.type': 'uncompressed',
    };
    const deleted = {
      ...common,
      'cleanup.policy': 'delete',
      'retention.ms': String(DAY_MS),
      'retention.bytes': '-1',
      'segment.ms': '10800000',
    };
    const compacted = {
      ...common,
      'cleanup.policy': 'compact',
      'min.compaction.lag.ms': '60000',
      'delete.retention.ms': String(DAY_MS),
      'min.cleanable.dirty.ratio': '0.1',
      'segment.ms': '3600000',
    };
    const shown = planTopics().map(({ name, partitions, replication, settings }) => [
      name,
      partitions,
      replication,
      Object.fromEntries(settings),
    ]);
    expect(shown).toEqual([
      ['throughline.inbound', 12, 3, deleted],
      ['throughline.events', 12, 3, deleted],
      ['throughline.sessions', 12, 3, compacted],
      ['throughline.meta', 1, 3, compacted],
      ['throughline.dead-letter', 1, 3, deleted],
    ]);
  });

  it('[KAFKA-TOPICS] inbound is held no shorter than events, and what cannot be is told', () => {
    const retention = (topic: string, options: object): string | undefined =>
      planTopics(options)
        .find((plan) => plan.topic === topic)
        ?.settings.get('retention.ms');
    expect(retention('inbound', { retentionMs: 5000 })).toBe('5000');
    expect(retention('inbound', { retentionMs: 5000, inboundRetentionMs: 9000 })).toBe('9000');
    expect(() => planTopics({ retentionMs: 5000, inboundRetentionMs: 4000 })).toThrow(RangeError);
    for (const options of [{ partitions: 0 }, { partitions: 1.5 }, { replication: 0 }, { retentionMs: -1 }])
      expect(() => planTopics(options)).toThrow(RangeError);
    expect(() => planTopics({ prefix: 'a b' })).toThrow(TypeError);
  });

  it('[KAFKA-TOPICS-DIFF] what is as it should be is no change; growth and settings are, and shrinking is refused', () => {
    const plans = planTopics({ partitions: 6, replication: 3, maxMessageBytes: 8_388_608 });
    expect(decideTopics(plans, stateOf(plans))).toEqual([]);
    expect(decideTopics(plans, new Map()).map(({ kind, topic }) => [kind, topic])).toEqual(
      plans.map(({ name }) => ['create', name]),
    );
    const states = stateOf(plans);
    const events = states.get('throughline.events')!;
    states.set('throughline.events', {
      ...events,
      partitions: 4,
      replication: 1,
      settings: new Map([
        ...events.settings,
        ['retention.ms', '1000'],
        ['max.message.bytes', '99999999'],
        ['message.timestamp.type', 'CreateTime'],
        ['cleanup.policy', 'compact,delete'],
      ]),
    });
    states.set('throughline.inbound', { ...states.get('throughline.inbound')!, partitions: 8 });
    const changes = decideTopics(plans, states);
    expect(changes.filter(({ kind }) => kind !== 'refused')).toEqual([
      { kind: 'add-partitions', topic: 'throughline.events', from: 4, to: 6 },
      { kind: 'set', topic: 'throughline.events', setting: 'min.insync.replicas', from: '2', to: '1' },
      {
        kind: 'set',
        topic: 'throughline.events',
        setting: 'message.timestamp.type',
        from: 'CreateTime',
        to: 'LogAppendTime',
      },
      { kind: 'set', topic: 'throughline.events', setting: 'retention.ms', from: '1000', to: String(DAY_MS) },
    ]);
    expect(changes.flatMap((change) => (change.kind === 'refused' ? [[change.topic, change.reason]] : []))).toEqual([
      ['throughline.inbound', expect.stringContaining('has 8 partitions')],
      ['throughline.events', expect.stringContaining('has 1 replicas, not 3')],
      ['throughline.events', expect.stringContaining('max.message.bytes is 99999999')],
      ['throughline.events', expect.stringContaining('cleanup.policy is compact,delete')],
    ]);
  });

  it('[KAFKA-TOPICS-DIFF] retention without end is not cut', () => {
    const states = statesWith('throughline.events', {}, { 'retention.ms': '-1' });
    expect(decideTopics(planTopics({ retentionMs: DAY_MS }), states).map(({ kind }) => kind)).toEqual(['refused']);
    expect(decideTopics(planTopics(), states)).toEqual([]);
  });

  it('[KAFKA-TOPICS-MORE] a topic that has more than a default is as it should be; asked for less, it is refused', () => {
    const events = 'throughline.events';
    const week = { 'retention.ms': String(7 * DAY_MS), 'segment.ms': String((7 * DAY_MS) / 8) };
    expect(decideTopics(planTopics(), statesWith(events, {}, week))).toEqual([]);
    expect(decideTopics(planTopics({ retentionMs: DAY_MS }), statesWith(events, {}, week))).toEqual([
      // Its segments stay as well: they are those of the retention that holds.
      { kind: 'refused', topic: events, reason: expect.stringContaining('retention.ms is 604800000') as string },
    ]);
    expect(decideTopics(planTopics(), statesWith(events, {}, { 'max.message.bytes': '99999999' }))).toEqual([]);
    expect(decideTopics(planTopics(), statesWith(events, { replication: 1 }, { 'min.insync.replicas': '1' }))).toEqual(
      [],
    );
    expect(decideTopics(planTopics(), statesWith(events, {}, { 'segment.ms': '75600000' }))).toEqual([
      { kind: 'set', topic: events, setting: 'segment.ms', from: '75600000', to: '10800000' },
    ]);
  });

  it('[KAFKA-TOPICS-MORE] partitions are added when asked for alone; where one topic has grown, the other two follow', () => {
    const three = stateOf(planTopics({ partitions: 3 }));
    expect(decideTopics(planTopics(), three)).toEqual([]);
    expect(decideTopics(planTopics({ partitions: 4 }), three).map(({ kind }) => kind)).toEqual(
      Array(3).fill('add-partitions'),
    );
    expect(decideTopics(planTopics(), statesWith('throughline.inbound', { partitions: 24 }))).toEqual([
      { kind: 'add-partitions', topic: 'throughline.events', from: 12, to: 24 },
      { kind: 'add-partitions', topic: 'throughline.sessions', from: 12, to: 24 },
    ]);
  });

  it('[KAFKA-TOPICS-ISR] replicas in sync that an append needs go by the replicas that there are', () => {
    const events = 'throughline.events';
    const changes = (replication: number, least: string): string[] =>
      decideTopics(planTopics(), statesWith(events, { replication }, { 'min.insync.replicas': least })).flatMap(
        (each) => (each.kind === 'set' ? [each.to] : []),
      );
    expect(changes(1, '2')).toEqual(['1']);
    expect(changes(2, '1')).toEqual([]);
    expect(changes(3, '1')).toEqual(['2']);
    expect(changes(5, '3')).toEqual([]);
  });
});
