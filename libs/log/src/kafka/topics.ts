/** Makes the topics what they have to be: says what it would change, changes it, and never takes anything away. */
import type { ClusterMap } from './cluster-map.ts';
import { createClusterMap } from './cluster-map.ts';
import type { AclOperation } from './acls.ts';
import { brokerFailure, deniedFailure, isDenial, isPassing, toLogError } from './kafka-failure.ts';
import type { KafkaClientOptions } from './options.ts';
import type { Topic } from '@throughline/protocol';
import { sleep } from '../clock.ts';
import { LogError } from '../errors.ts';
import type { TopicPlan, TopicPlanOptions } from './topic-settings.ts';
import { leastInSync, planTopics, segmentWithin } from './topic-settings.ts';
import { KAFKA_ERRORS, nameOfError } from './wire/call.ts';
import type { AdminResult } from './wire/cluster.ts';
import { alterTopicsCall, createPartitionsCall, createTopicsCall, describeTopicsCall } from './wire/cluster.ts';

/** A difference between what is and what should be. */
export type TopicChange =
  | { readonly kind: 'create'; readonly topic: string; readonly partitions: number; readonly replication: number }
  | { readonly kind: 'add-partitions'; readonly topic: string; readonly from: number; readonly to: number }
  | {
      readonly kind: 'set';
      readonly topic: string;
      readonly setting: string;
      readonly from: string;
      readonly to: string;
    }
  /** What is not done: it would shrink, lose records, or move replicas. `reason` says it. */
  | { readonly kind: 'refused'; readonly topic: string; readonly reason: string };

export interface TopicState {
  readonly partitions: number;
  /** Replicas of the partition that has the fewest. */
  readonly replication: number;
  /** Replicas in sync of the partition that has the fewest. */
  readonly inSync: number;
  /** Partitions without a leader: they take nothing and give nothing. */
  readonly offline: number;
  readonly settings: ReadonlyMap<string, string>;
}

const ADMIN_MS = 30_000;
const SETTLE_MS = 30_000;

/**
 * The decision, pure. `states` has an entry for each topic that exists. Where nobody asked for a number, a topic that
 * has more is as it should be.
 */
export function decideTopics(plans: readonly TopicPlan[], states: ReadonlyMap<string, TopicState>): TopicChange[] {
  const changes: TopicChange[] = [];
  const grown = Math.max(
    0,
    ...plans.map(({ topic, name }) => (topic in GROW ? (states.get(name)?.partitions ?? 0) : 0)),
  );
  for (const plan of plans) {
    const { name: topic, replication, asked } = plan;
    const isAsked = asked.has('partitions') || !(plan.topic in GROW);
    // Growing is for ever, so it is done when asked for alone; where one has grown already, the others follow.
    const partitions = isAsked || grown === 0 ? plan.partitions : grown;
    const state = states.get(topic);
    if (state === undefined) {
      changes.push({ kind: 'create', topic, partitions, replication });
      continue;
    }
    if (partitions > state.partitions)
      changes.push({ kind: 'add-partitions', topic, from: state.partitions, to: partitions });
    if (partitions < state.partitions)
      changes.push({
        kind: 'refused',
        topic,
        reason: `has ${state.partitions} partitions, and Kafka cannot take any away; ask for ${state.partitions} or use another prefix`,
      });
    if (replication > state.replication && asked.has('replication'))
      changes.push({
        kind: 'refused',
        topic,
        reason: `has ${state.replication} replicas, not ${replication}; move it with kafka-reassign-partitions`,
      });
    // Segments go by the retention that really holds: shorter ones for the same time are only more files.
    const heldMs = state.settings.get('retention.ms') ?? '';
    const wantedMs = plan.settings.get('retention.ms') ?? heldMs;
    const keepsRetention =
      !isEnough('retention.ms', wantedMs, state, asked) && refusalToSet('retention.ms', heldMs, wantedMs) !== null;
    for (const [setting, wanted] of plan.settings) {
      if (setting === 'segment.ms' && keepsRetention) continue;
      const from = state.settings.get(setting) ?? '';
      // What the topic has decides: with one replica, two in sync could never be.
      const to = setting === 'min.insync.replicas' ? String(leastInSync(state.replication)) : wanted;
      if (from === to || isEnough(setting, to, state, asked)) continue;
      const reason = refusalToSet(setting, from, to);
      if (reason === null) changes.push({ kind: 'set', topic, setting, from, to });
      else changes.push({ kind: 'refused', topic, reason });
    }
  }
  return changes;
}

/** Topics of one partition count. */
const GROW = { inbound: true, events: true, sessions: true } as const;

/** More than what nobody asked for, or safer than what is needed: no difference. */
function isEnough(setting: string, to: string, state: TopicState, asked: TopicPlan['asked']): boolean {
  const from = state.settings.get(setting) ?? '';
  const isMore = from === '-1' || Number(from) > Number(to);
  switch (setting) {
    case 'retention.ms':
    case 'max.message.bytes':
      return from !== '' && isMore && !asked.has(setting);
    case 'min.insync.replicas':
      return from !== '' && isMore && Number(from) <= state.replication;
    case 'segment.ms': {
      if (from === '' || asked.has('retention.ms')) return false;
      const heldMs = Number(state.settings.get('retention.ms') ?? '0');
      const isKept = !isMore || (state.settings.get('cleanup.policy') === 'delete' && heldMs > 0);
      return isKept && Number(from) <= Math.max(Number(to), segmentWithin(heldMs));
    }
    default:
      return false;
  }
}

/** Why a setting is not changed; `null`: it may be. */
function refusalToSet(setting: string, from: string, to: string): string | null {
  const hint = 'set it with kafka-configs if it is meant';
  const isLess = Number(from) > Number(to) || (from === '-1' && to !== '-1');
  if ((setting === 'retention.ms' || setting === 'max.message.bytes') && isLess)
    return `${setting} is ${from}; ${to} would shrink it: ${hint}`;
  if (setting === 'cleanup.policy' && from !== '')
    return `cleanup.policy is ${from}; ${to} would remove records or keep them for ever: ${hint}`;
  return null;
}

/** A topic as it is, beside its plan. */
export interface ShownTopic {
  readonly topic: Topic;
  readonly name: string;
  /** Null: there is none. */
  readonly state: TopicState | null;
}

/** The topics of a prefix as they are. Errors: `LOG_UNAVAILABLE`, `NOT_AUTHENTICATED`, `NOT_AUTHORIZED`. */
export async function showTopics(client: KafkaClientOptions, options: TopicPlanOptions = {}): Promise<ShownTopic[]> {
  const plans = planTopics(options);
  return await withMap(client, async (map) => {
    const states = await findStates(map, plans);
    return plans.map(({ topic, name }) => ({ topic, name, state: states.get(name) ?? null }));
  });
}

/** What `applyTopics` would change. Errors: `LOG_UNAVAILABLE`, `NOT_AUTHENTICATED`, `NOT_AUTHORIZED`. */
export async function diffTopics(client: KafkaClientOptions, options: TopicPlanOptions = {}): Promise<TopicChange[]> {
  const plans = planTopics(options);
  return await withMap(client, async (map) => decideTopics(plans, await findStates(map, plans)));
}

/**
 * Creates what is missing and sets what differs. Idempotent: a second call finds nothing to change. Returns what was
 * changed and what was refused; settings that are not named here stay as they are. Errors: `LOG_UNAVAILABLE`,
 * `NOT_AUTHENTICATED`, `NOT_AUTHORIZED` (what comes before the missing right was done).
 */
export async function applyTopics(client: KafkaClientOptions, options: TopicPlanOptions = {}): Promise<TopicChange[]> {
  const plans = planTopics(options);
  return await withMap(client, async (map) => {
    const changes = decideTopics(plans, await findStates(map, plans));
    const created = plans.flatMap((plan) => {
      const change = changes.find(({ kind, topic }) => kind === 'create' && topic === plan.name);
      return change?.kind === 'create' ? [{ ...plan, partitions: change.partitions }] : [];
    });
    if (created.length > 0)
      check(
        'create',
        'Create',
        await map.callController(createTopicsCall(created), ADMIN_MS),
        KAFKA_ERRORS.TOPIC_ALREADY_EXISTS,
      );
    const grown = changes.flatMap((change) =>
      change.kind === 'add-partitions' ? [{ name: change.topic, count: change.to }] : [],
    );
    if (grown.length > 0)
      check('add partitions to', 'Alter', await map.callController(createPartitionsCall(grown), ADMIN_MS));
    const settings = new Map<string, Map<string, string>>();
    for (const change of changes) {
      if (change.kind !== 'set') continue;
      const of = settings.get(change.topic) ?? new Map<string, string>();
      settings.set(change.topic, of.set(change.setting, change.to));
    }
    const altered = [...settings].map(([name, of]) => ({ name, settings: of }));
    if (altered.length > 0) check('set', 'AlterConfigs', await map.callController(alterTopicsCall(altered), ADMIN_MS));
    if (changes.some(({ kind }) => kind !== 'refused')) await waitUntilDone(client, map, plans);
    return changes;
  });
}

/** Brokers learn of changes one after the other: whoever opens the log before that would be refused, or misled. */
async function waitUntilDone(client: KafkaClientOptions, map: ClusterMap, plans: readonly TopicPlan[]): Promise<void> {
  const untilMs = client.clock.monoMs() + SETTLE_MS;
  for (;;) {
    const { topics } = await map.metadata(plans.map(({ name }) => name));
    const isLed = topics.every(({ error, partitions }) => error === 0 && partitions.every(({ leader }) => leader >= 0));
    if (isLed && decideTopics(plans, await findStates(map, plans)).every(({ kind }) => kind === 'refused')) return;
    if (client.clock.monoMs() >= untilMs)
      throw new LogError('LOG_UNAVAILABLE', `the brokers do not show the changes after ${SETTLE_MS / 1000} s`);
    await sleep(client.clock, 50);
  }
}

async function findStates(map: ClusterMap, plans: readonly TopicPlan[]): Promise<Map<string, TopicState>> {
  const { topics } = await map.metadata(plans.map(({ name }) => name));
  const there = topics.filter(({ error, partitions }) => error === 0 || partitions.length > 0);
  const failed = topics.find(
    ({ error, partitions }) =>
      error !== 0 && partitions.length === 0 && error !== KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION,
  );
  if (failed !== undefined)
    throw brokerFailure(`Metadata of ${failed.name}`, failed.error, {
      resource: 'topic',
      name: failed.name,
      operation: 'Describe',
    });
  if (there.length === 0) return new Map();
  const described = await map.callAny(
    describeTopicsCall(
      there.map(({ name }) => name),
      [...new Set(plans.flatMap(({ settings }) => [...settings.keys()]))],
    ),
    ADMIN_MS,
  );
  check('describe', 'DescribeConfigs', described);
  return new Map(
    there.map(({ name, partitions }) => [
      name,
      {
        partitions: partitions.length,
        replication: Math.min(...partitions.map(({ replicas }) => replicas.length)),
        inSync: Math.min(...partitions.map(({ inSync }) => inSync.length)),
        offline: partitions.filter(({ leader }) => leader < 0).length,
        settings: described.find((topic) => topic.name === name)?.settings ?? new Map<string, string>(),
      },
    ]),
  );
}

function check(what: string, needs: AclOperation, results: readonly AdminResult[], ...fine: number[]): void {
  const failed = results.filter(({ error }) => error !== 0 && !fine.includes(error));
  if (failed.length === 0) return;
  const denied = failed.filter(({ error }) => isDenial(error));
  const [first] = denied;
  if (first !== undefined)
    throw deniedFailure(
      denied.map(({ name }) => ({ resource: 'topic', name, operation: needs })),
      first.error,
    );
  // Topics that fail alike are named together.
  const causes = new Map<string, string[]>();
  for (const { name, error, message } of failed) {
    const cause = `${nameOfError(error)}${message === null ? '' : ` (${message})`}`;
    causes.set(cause, [...(causes.get(cause) ?? []), name]);
  }
  const list = [...causes].map(([cause, names]) => `${names.join(', ')}: ${cause}`);
  throw new LogError('LOG_UNAVAILABLE', `cannot ${what} topics: ${list.join('; ')}${hintFor(failed)}`);
}

/** The way out of what happens most. */
function hintFor(failed: readonly AdminResult[]): string {
  const has = (code: number): boolean => failed.some(({ error }) => error === code);
  if (has(KAFKA_ERRORS.INVALID_REPLICATION_FACTOR))
    return '. The cluster has fewer brokers than replicas; for a trial on one broker write --replication 1';
  return '';
}

async function withMap<T>(client: KafkaClientOptions, run: (map: ClusterMap) => Promise<T>): Promise<T> {
  const map = createClusterMap(client);
  try {
    return await run(map);
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) throw error;
    throw toLogError(error, isPassing(error) ? 'the cluster does not answer' : 'the cluster refuses');
  } finally {
    map.close();
  }
}
