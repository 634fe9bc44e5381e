/** ApiVersions, Metadata and the administration of topics. */
import { ByteReader } from './bytes.ts';
import type { WireCall } from './call.ts';
import { makeCall } from './call.ts';

/** ApiVersions version 0. */
export function apiVersionsCall(): WireCall<{ error: number; highest: ReadonlyMap<number, number> }> {
  return makeCall(
    { key: 18, name: 'ApiVersions', version: 0 },
    () => undefined,
    (answer) => {
      const error = answer.int16();
      const highest = new Map<number, number>();
      answer.array(() => {
        const key = answer.int16();
        answer.int16();
        highest.set(key, answer.int16());
      });
      return { error, highest };
    },
  );
}

/** `metadata.version` and the like: what a broker could do, and what the cluster agreed on. */
export interface Feature {
  readonly name: string;
  readonly level: number;
}

export interface BrokerAbilities {
  readonly error: number;
  /** Highest version of each request. */
  readonly highest: ReadonlyMap<number, number>;
  readonly supported: readonly Feature[];
  readonly finalized: readonly Feature[];
}

/** ApiVersions version 3, which tells features too. A broker that does not know it answers with error 35 and nothing else. */
export function abilitiesCall(): WireCall<BrokerAbilities> {
  return makeCall(
    { key: 18, name: 'ApiVersions', version: 3 },
    (writer) => {
      // Ends the header of this version; then name and version of the client, and no tagged fields.
      writer.noTags().compactString('throughline').compactString('1').noTags();
    },
    (answer) => {
      const error = answer.int16();
      const highest = new Map<number, number>();
      if (error !== 0) return { error, highest, supported: [], finalized: [] };
      answer.compactArray(() => {
        const key = answer.int16();
        answer.int16();
        highest.set(key, answer.int16());
        answer.tags();
      });
      answer.int32();
      const features = answer.tags();
      const readFeatures = (tag: number, hasHighestFirst: boolean): Feature[] => {
        const bytes = features.get(tag);
        if (bytes === undefined) return [];
        const reader = new ByteReader(bytes);
        return reader.compactArray(() => {
          const name = reader.compactString();
          const [first, second] = [reader.int16(), reader.int16()];
          reader.tags();
          return { name, level: hasHighestFirst ? first : second };
        });
      };
      return { error, highest, supported: readFeatures(0, false), finalized: readFeatures(2, true) };
    },
  );
}

export interface TopicMetadata {
  readonly error: number;
  readonly name: string;
  /** One bit an operation that this process may do with the topic; `null`: not asked for, or not said. */
  readonly allowed: number | null;
  readonly partitions: readonly {
    readonly error: number;
    readonly partition: number;
    readonly leader: number;
    readonly replicas: readonly number[];
    readonly inSync: readonly number[];
    /** Rises with each election. */
    readonly leaderEpoch: number;
  }[];
}

export interface ClusterMetadata {
  readonly brokers: readonly { readonly node: number; readonly host: string; readonly port: number }[];
  readonly clusterId: string | null;
  readonly controller: number;
  readonly topics: readonly TopicMetadata[];
}

const NOT_SAID = -(2 ** 31);

export const METADATA_WITH_IDS = { key: 3, name: 'Metadata', version: 10 } as const;

export interface TopicIdentity {
  readonly name: string;
  /** 32 hexadecimal digits, of this very topic: one that is made anew under its name has another; `null`: not told. */
  readonly id: string | null;
  /** How many it has. */
  readonly partitions: number;
}

const NO_ID = '0'.repeat(32);

/** Metadata version 10, of brokers since 2.8. Never creates a topic. */
export function topicIdsCall(topics: readonly string[]): WireCall<readonly TopicIdentity[]> {
  return makeCall(
    METADATA_WITH_IDS,
    (writer) =>
      writer
        // Ends the header of this version.
        .noTags()
        .compactArray(topics, (topic) => writer.raw(Buffer.alloc(16)).compactString(topic).noTags())
        .boolean(false)
        .boolean(false)
        .boolean(false)
        .noTags(),
    (answer) => {
      answer.tags();
      answer.int32();
      answer.compactArray(() => {
        answer.int32();
        answer.compactString();
        answer.int32();
        answer.compactString();
        answer.tags();
      });
      answer.compactString();
      answer.int32();
      return answer.compactArray(() => {
        // One that is not there, or may not be seen, has neither id nor partitions.
        answer.int16();
        const name = answer.compactString();
        const id = answer.raw(16).toString('hex');
        answer.int8();
        const { length } = answer.compactArray(() => {
          answer.raw(2 + 4 + 4 + 4);
          for (let list = 0; list < 3; list++) answer.compactArray(() => answer.int32());
          answer.tags();
        });
        answer.int32();
        answer.tags();
        return { name, id: id === NO_ID ? null : id, partitions: length };
      });
    },
  );
}

/** Metadata version 8. Never creates a topic. */
export function metadataCall(topics: readonly string[], asksRights = false): WireCall<ClusterMetadata> {
  return makeCall(
    { key: 3, name: 'Metadata', version: 8 },
    (writer) =>
      writer
        .array(topics, (topic) => writer.string(topic))
        .boolean(false)
        .boolean(false)
        .boolean(asksRights),
    (answer) => {
      answer.int32();
      const brokers = answer.array(() => {
        const broker = { node: answer.int32(), host: answer.string(), port: answer.int32() };
        answer.nullableString();
        return broker;
      });
      const clusterId = answer.nullableString();
      const controller = answer.int32();
      const topicList = answer.array(() => {
        const error = answer.int16();
        const name = answer.string();
        answer.int8();
        const partitions = answer.array(() => {
          const partition = {
            error: answer.int16(),
            partition: answer.int32(),
            leader: answer.int32(),
            leaderEpoch: answer.int32(),
            replicas: answer.array(() => answer.int32()),
            inSync: answer.array(() => answer.int32()),
          };
          answer.array(() => answer.int32());
          return partition;
        });
        const allowed = answer.int32();
        return { error, name, partitions, allowed: allowed === NOT_SAID ? null : allowed };
      });
      return { brokers, clusterId, controller, topics: topicList };
    },
  );
}

export interface AdminResult {
  readonly name: string;
  readonly error: number;
  readonly message: string | null;
}

const TOPIC_RESOURCE = 2;
const BROKER_RESOURCE = 4;
const ADMIN_TIMEOUT_MS = 20_000;

/** The throttle time, which is left to the broker, then one result a topic. */
function readTopicResults(answer: ByteReader): AdminResult[] {
  answer.int32();
  return answer.array(() => ({
    name: answer.string(),
    error: answer.int16(),
    message: answer.nullableString(),
  }));
}

/** CreateTopics version 2. */
export function createTopicsCall(
  topics: readonly {
    readonly name: string;
    readonly partitions: number;
    readonly replication: number;
    readonly settings: ReadonlyMap<string, string>;
  }[],
): WireCall<AdminResult[]> {
  return makeCall(
    { key: 19, name: 'CreateTopics', version: 2 },
    (writer) => {
      writer.array(topics, (topic) => {
        writer.string(topic.name).int32(topic.partitions).int16(topic.replication).int32(0);
        writer.array([...topic.settings], ([name, value]) => writer.string(name).nullableString(value));
      });
      writer.int32(ADMIN_TIMEOUT_MS).boolean(false);
    },
    readTopicResults,
  );
}

/** CreatePartitions version 1: raises the number of partitions to `count`. */
export function createPartitionsCall(
  topics: readonly { readonly name: string; readonly count: number }[],
): WireCall<AdminResult[]> {
  return makeCall(
    { key: 37, name: 'CreatePartitions', version: 1 },
    (writer) => {
      writer.array(topics, ({ name, count }) => writer.string(name).int32(count).int32(-1));
      writer.int32(ADMIN_TIMEOUT_MS).boolean(false);
    },
    readTopicResults,
  );
}

export interface DescribedTopic extends AdminResult {
  readonly settings: ReadonlyMap<string, string>;
}

/** DescribeConfigs version 1, of topics; `names` null: all settings. */
export function describeTopicsCall(
  topics: readonly string[],
  names: readonly string[] | null,
): WireCall<DescribedTopic[]> {
  return describeCall(TOPIC_RESOURCE, topics, names);
}

/** DescribeConfigs version 1, of the broker that is asked. */
export function describeBrokerCall(node: number, names: readonly string[]): WireCall<DescribedTopic[]> {
  return describeCall(BROKER_RESOURCE, [String(node)], names);
}

function describeCall(
  resource: number,
  topics: readonly string[],
  names: readonly string[] | null,
): WireCall<DescribedTopic[]> {
  return makeCall(
    { key: 32, name: 'DescribeConfigs', version: 1 },
    (writer) => {
      writer.array(topics, (topic) => {
        writer.int8(resource).string(topic);
        if (names === null) writer.int32(-1);
        else writer.array(names, (name) => writer.string(name));
      });
      writer.boolean(false);
    },
    (answer) => {
      answer.int32();
      return answer.array(() => {
        const head = readResource(answer);
        const settings = new Map<string, string>();
        answer.array(() => {
          const setting = answer.string();
          const value = answer.nullableString();
          answer.int8();
          answer.int8();
          answer.int8();
          answer.array(() => [answer.string(), answer.nullableString(), answer.int8()]);
          if (value !== null) settings.set(setting, value);
        });
        return { ...head, settings };
      });
    },
  );
}

/** IncrementalAlterConfigs version 0: sets what is named and leaves every other setting as it is. */
export function alterTopicsCall(
  topics: readonly { readonly name: string; readonly settings: ReadonlyMap<string, string> }[],
): WireCall<AdminResult[]> {
  return makeCall(
    { key: 44, name: 'IncrementalAlterConfigs', version: 0 },
    (writer) => {
      writer.array(topics, (topic) => {
        writer.int8(TOPIC_RESOURCE).string(topic.name);
        writer.array([...topic.settings], ([name, value]) => writer.string(name).int8(0).nullableString(value));
      });
      writer.boolean(false);
    },
    (answer) => {
      answer.int32();
      return answer.array(() => readResource(answer));
    },
  );
}

/** What answers about settings say first of each topic or broker. */
function readResource(answer: ByteReader): AdminResult {
  const error = answer.int16();
  const message = answer.nullableString();
  answer.int8();
  return { name: answer.string(), error, message };
}
