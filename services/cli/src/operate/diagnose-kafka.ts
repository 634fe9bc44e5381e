/** Findings about a cluster and its topics: a pure function of what was asked. */
import type { Asked, KafkaFacts, TopicChange, TopicFactsOf } from '@throughline/log/kafka';
import { formatDuration, formatSize } from '../format-value.ts';
import type { Finding } from './doctor-codes.ts';
import type { Diagnosed } from './diagnosed.ts';

type Kafka = KafkaFacts & { readonly cluster: { readonly known: true } };

/** Key, value and headers that the product adds around a body, with room to spare. */
const BODY_OVERHEAD = 8 * 1024;
/** Settings without which records get lost or a log is not opened. */
const VITAL = new Set(['cleanup.policy', 'message.timestamp.type', 'min.insync.replicas', 'retention.bytes']);
const WANTED_REPLICAS = 3;

export function diagnoseKafka(kafka: KafkaFacts, asked: Diagnosed): Finding[] {
  const { cluster } = kafka;
  if (!cluster.known)
    return [
      {
        code: 'cluster-reachable',
        level: 'fail',
        what: `no broker of ${asked.brokers.join(', ')} can be used: ${cluster.message}`,
        fix: 'check --log, the network, and --kafka-tls and --kafka-sasl; `kcat -L -b <broker>` shows whether the address answers',
      },
    ];
  const known = { ...kafka, cluster };
  return [
    reachable(known),
    versions(known, asked),
    topicsExist(known, asked),
    topicSettings(asked),
    replication(known, asked),
    inSync(known, asked),
    online(known, asked),
    unclean(known, asked),
    maxMessage(known, asked),
    groupTimeouts(known, asked),
    autoCreate(known, asked),
    group(known, asked),
  ];
}

function reachable({ cluster, brokers }: Kafka): Finding {
  const { clusterId, controller } = cluster.value;
  const nodes = brokers.map(({ node, address }) => `${node} at ${address}`).join(', ');
  return ok('cluster-reachable', `cluster ${clusterId}, controller ${controller}, brokers ${nodes}`);
}

function versions({ brokers }: Kafka, asked: Diagnosed): Finding {
  const old = brokers.flatMap(({ node, abilities }) =>
    abilities.known && abilities.value.missing.length > 0
      ? [`${node} lacks ${abilities.value.missing.join(', ')}`]
      : [],
  );
  if (old.length > 0)
    return {
      code: 'broker-versions',
      level: 'fail',
      what: `broker ${old.join('; broker ')}`,
      fix: 'upgrade the brokers; Kafka 2.4 and later serve what is needed, 3.9 and 4.x are tested',
    };
  const silent = brokers.filter(({ abilities }) => !abilities.known).map(({ node, address }) => `${node} (${address})`);
  if (silent.length > 0)
    return {
      code: 'broker-versions',
      level: 'warn',
      what: `broker ${silent.join(', ')} does not answer`,
      fix: `kafka-broker-api-versions.sh --bootstrap-server ${asked.brokers.join(',')}`,
    };
  const levels = brokers.map(({ node, abilities }) => {
    if (!abilities.known) return '';
    const { softwareLevel, clusterLevel } = abilities.value;
    return `${node}: ${releaseOf(softwareLevel)}, feature level ${clusterLevel ?? 'none'}`;
  });
  return ok('broker-versions', levels.join('; '));
}

/** First `metadata.version` of each release. */
const RELEASES: readonly (readonly [level: number, release: string])[] = [
  [26, '4.1 or later'],
  [22, '4.0'],
  [21, '3.9'],
  [20, '3.8'],
  [15, '3.7'],
  [12, '3.6'],
  [9, '3.5'],
  [8, '3.4'],
  [4, '3.3'],
];

export function releaseOf(level: number | null): string {
  const release = RELEASES.find(([least]) => level !== null && level >= least)?.[1];
  return release === undefined ? 'Kafka before 3.3' : `Kafka ${release}`;
}

function topicsExist({ topics }: Kafka, { cli, acl }: Diagnosed): Finding {
  const hidden = topics.filter(({ partitions }) => !partitions.known);
  if (hidden.length > 0)
    return unknown(
      'topics-exist',
      `${hidden.map(({ name }) => name).join(', ')} may not be seen`,
      acl('Describe', 'topic'),
    );
  const missing = topics.filter(({ partitions }) => partitions.known && partitions.value === null);
  if (missing.length > 0)
    return {
      code: 'topics-exist',
      level: 'fail',
      what: `missing: ${missing.map(({ name }) => name).join(', ')}`,
      fix: cli('topics apply'),
    };
  const counts = topics.map((topic) => `${topic.topic} ${partitionsOf(topic).length}`);
  return ok('topics-exist', `partitions: ${counts.join(', ')}`);
}

function topicSettings({ differences, cli, fixFor }: Diagnosed): Finding {
  if (differences === null || !differences.known)
    return unknown(
      'topic-settings',
      differences?.message ?? 'the settings were not read',
      fixFor(differences ?? { denied: false }, 'DescribeConfigs', 'topic'),
    );
  if (differences.value.length > 0 && differences.value.every(({ kind }) => kind === 'create'))
    return unknown('topic-settings', 'there are no topics', cli('topics apply'));
  const relevant = differences.value.filter(({ kind }) => kind !== 'create');
  if (relevant.length === 0) return ok('topic-settings', 'as `throughline topics apply` sets them');
  const isVital = relevant.some((change) => change.kind === 'set' && VITAL.has(change.setting));
  return {
    code: 'topic-settings',
    level: isVital ? 'fail' : 'warn',
    what: relevant.map(changeText).join('; '),
    fix: relevant.some(({ kind }) => kind !== 'refused') ? cli('topics apply') : cli('topics diff'),
  };
}

function changeText(change: TopicChange): string {
  switch (change.kind) {
    case 'create':
      return `${change.topic} is missing`;
    case 'add-partitions':
      return `${change.topic} has ${change.from} partitions, not ${change.to}`;
    case 'set':
      return `${change.topic} has ${change.setting}=${change.from}, not ${change.to}`;
    case 'refused':
      return `${change.topic} ${change.reason}`;
  }
}

function replication({ topics }: Kafka, asked: Diagnosed): Finding {
  const { brokers } = asked;
  const counts = topics.flatMap((topic) =>
    partitionsOf(topic).map(({ replicas }) => ({ topic, count: replicas.length })),
  );
  if (counts.length === 0) return unseen('replication', topics, 'Describe', asked);
  const least = Math.min(...counts.map(({ count }) => count));
  if (least >= WANTED_REPLICAS) return ok('replication', `${least} replicas`);
  const names = new Set(counts.filter(({ count }) => count === least).map(({ topic }) => topic.name));
  return {
    code: 'replication',
    level: 'warn',
    what: `${[...names].join(', ')}: ${least} ${least === 1 ? 'replica' : 'replicas'}`,
    fix: `kafka-reassign-partitions.sh --bootstrap-server ${brokers.join(',')} --reassignment-json-file <file with three replicas a partition> --execute`,
  };
}

function inSync({ topics }: Kafka, asked: Diagnosed): Finding {
  const { brokers } = asked;
  const all = topics.flatMap((topic) => partitionsOf(topic).map((partition) => ({ topic, partition })));
  if (all.length === 0) return unseen('replicas-in-sync', topics, 'Describe', asked);
  const name = ({ topic, partition }: (typeof all)[number]): string =>
    `${topic.name}/${partition.partition} (${partition.inSync.length} of ${partition.replicas.length})`;
  const list = (some: typeof all): string =>
    some.slice(0, MOST_NAMED).map(name).join(', ') +
    (some.length > MOST_NAMED ? ` and ${some.length - MOST_NAMED} more` : '');
  const fix = `kafka-topics.sh --bootstrap-server ${brokers.join(',')} --describe --under-replicated-partitions`;
  const below = all.filter(({ topic, partition }) => {
    const least = Number(settingOf(topic, 'min.insync.replicas') ?? 1);
    return partition.inSync.length < least;
  });
  if (below.length > 0)
    return { code: 'replicas-in-sync', level: 'fail', what: `appends are refused: ${list(below)}`, fix };
  const under = all.filter(({ partition }) => partition.inSync.length < partition.replicas.length);
  if (under.length > 0) return { code: 'replicas-in-sync', level: 'warn', what: list(under), fix };
  return ok('replicas-in-sync', `all replicas of ${all.length} partitions`);
}

const MOST_NAMED = 10;

function online({ topics }: Kafka, asked: Diagnosed): Finding {
  const { brokers } = asked;
  const all = topics.flatMap((topic) => partitionsOf(topic).map((partition) => ({ topic, partition })));
  if (all.length === 0) return unseen('partitions-online', topics, 'Describe', asked);
  const offline = all.filter(({ partition }) => partition.leader < 0);
  if (offline.length === 0) return ok('partitions-online', `all ${all.length} partitions have a leader`);
  const names = offline.slice(0, MOST_NAMED).map(({ topic, partition }) => `${topic.name}/${partition.partition}`);
  return {
    code: 'partitions-online',
    level: 'fail',
    what: `${offline.length} without a leader: ${names.join(', ')}`,
    fix: `kafka-topics.sh --bootstrap-server ${brokers.join(',')} --describe --unavailable-partitions; bring their brokers back`,
  };
}

function unclean({ topics }: Kafka, asked: Diagnosed): Finding {
  const { cli } = asked;
  const values = topics.map((topic) => [topic.name, settingOf(topic, 'unclean.leader.election.enable')] as const);
  const on = values.filter(([, value]) => value === 'true').map(([name]) => name);
  if (on.length > 0)
    return { code: 'unclean-election', level: 'fail', what: `on for ${on.join(', ')}`, fix: cli('topics apply') };
  if (values.every(([, value]) => value === undefined))
    return unseen('unclean-election', topics, 'DescribeConfigs', asked);
  return ok('unclean-election', 'off');
}

function maxMessage({ topics }: Kafka, asked: Diagnosed): Finding {
  const { cli, maxBodyBytes } = asked;
  const sizes = topics.flatMap((topic) => {
    const value = settingOf(topic, 'max.message.bytes');
    return value === undefined ? [] : [{ name: topic.name, bytes: Number(value) }];
  });
  if (sizes.length === 0) return unseen('max-message', topics, 'DescribeConfigs', asked);
  const small = sizes.filter(({ bytes }) => bytes < maxBodyBytes + BODY_OVERHEAD);
  if (small.length > 0)
    return {
      code: 'max-message',
      level: 'fail',
      what: `${small.map(({ name, bytes }) => `${name} takes ${formatSize(bytes)}`).join(', ')}; --max-body is ${formatSize(maxBodyBytes)}`,
      fix: cli('topics apply'),
    };
  return ok(
    'max-message',
    `${formatSize(Math.min(...sizes.map(({ bytes }) => bytes)))}; bodies may have ${formatSize(maxBodyBytes)}`,
  );
}

function groupTimeouts({ brokerSettings }: Kafka, { fixFor, leaseMs }: Diagnosed): Finding {
  if (!brokerSettings.known)
    return unknown(
      'group-timeouts',
      `the settings of the brokers are not known: ${brokerSettings.message}`,
      fixFor(brokerSettings, 'DescribeConfigs', 'cluster'),
    );
  const least = Number(brokerSettings.value.get('group.min.session.timeout.ms') ?? 0);
  const most = Number(brokerSettings.value.get('group.max.session.timeout.ms') ?? Infinity);
  if (leaseMs < least || leaseMs > most)
    return {
      code: 'group-timeouts',
      level: 'fail',
      what: `--lease is ${formatDuration(leaseMs)}; the brokers take ${formatDuration(least)} to ${formatDuration(most)}`,
      fix: `set --lease to at least ${formatDuration(least)}`,
    };
  return ok('group-timeouts', `${formatDuration(leaseMs)}; the brokers take ${formatDuration(least)} and more`);
}

function autoCreate({ brokerSettings }: Kafka, { fixFor, brokers }: Diagnosed): Finding {
  if (!brokerSettings.known)
    return unknown(
      'auto-create',
      `the settings of the brokers are not known: ${brokerSettings.message}`,
      fixFor(brokerSettings, 'DescribeConfigs', 'cluster'),
    );
  if (brokerSettings.value.get('auto.create.topics.enable') !== 'true') return ok('auto-create', 'off');
  return {
    code: 'auto-create',
    level: 'warn',
    what: 'brokers create topics that anybody names',
    fix: `set auto.create.topics.enable=false in server.properties of the brokers ${brokers.join(',')}`,
  };
}

function group({ group: asked }: Kafka, { acl, brokers, livingWorkers }: Diagnosed): Finding {
  if (!asked.known)
    return unknown(
      'group',
      `the group is not known: ${asked.message}`,
      asked.denied
        ? acl('Describe', 'group')
        : `kafka-topics.sh --bootstrap-server ${brokers.join(',')} --describe --topic __consumer_offsets; each partition needs a leader, and as many brokers as offsets.topic.replication.factor says`,
    );
  const { name, state, members } = asked.value;
  const what = `${name}: ${state}, ${members.length} members`;
  if (state !== 'Stable' && livingWorkers > 0)
    return {
      code: 'group',
      level: 'warn',
      what: `${what}, while ${livingWorkers} workers live`,
      fix: 'look at the logs of the workers',
    };
  return ok('group', what);
}

function partitionsOf({ partitions }: TopicFactsOf) {
  return partitions.known ? (partitions.value ?? []) : [];
}

function settingOf({ settings }: TopicFactsOf, name: string): string | undefined {
  return settings.known ? settings.value.get(name) : undefined;
}

function ok(code: Finding['code'], what: string): Finding {
  return { code, level: 'ok', what, fix: null };
}

function unknown(code: Finding['code'], what: string, fix: string): Finding {
  return { code, level: 'unknown', what, fix };
}

/** Nothing of any topic is known: they are missing, which another finding says, or may not be seen. */
function unseen(
  code: Finding['code'],
  topics: readonly TopicFactsOf[],
  right: 'Describe' | 'DescribeConfigs',
  { acl, cli, fixFor }: Diagnosed,
): Finding {
  const asked: readonly Asked<unknown>[] = topics.flatMap(({ partitions, settings }) => [partitions, settings]);
  if (asked.some((each) => !each.known && each.denied))
    return unknown(code, 'the topics may not be seen', acl(right, 'topic'));
  if (topics.some(({ partitions }) => partitions.known && partitions.value !== null))
    return unknown(code, 'the topics were not read', fixFor({ denied: false }, right, 'topic'));
  return unknown(code, 'there are no topics', cli('topics apply'));
}
