/** What tests may do to brokers of their own, whatever runs them: containers or processes. */
import type { PartyLinks } from './party-links.ts';
import type { SmallDisk } from './small-disk.ts';

export interface KafkaBroker {
  /** Its node id, from 1. */
  readonly id: number;
  /** `host:port` for clients on this host; kept over stops. */
  readonly address: string;
  /** False once it has ended, by whom or what ever. */
  isRunning(): Promise<boolean>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Orderly: it hands its leaderships over. */
  stop(): Promise<void>;
  /** After `kill` or `stop`: the same data at the same address. Resolves when it serves; no effect while it runs. */
  start(): Promise<void>;
  /** `stop` and `start`. */
  restart(): Promise<void>;
  /** It stands still; its sockets stay open. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** What it wrote last. */
  output(): Promise<string>;
}

export interface ToolResult {
  readonly code: number;
  /** What it wrote to stdout and stderr. */
  readonly output: string;
}

export interface KafkaCluster {
  readonly from: 'container' | 'local';
  readonly members: readonly KafkaBroker[];
  /** Addresses of all members. */
  readonly brokers: readonly string[];
  /** Throws on an id that is not a member's. */
  member(id: number): KafkaBroker;
  /**
   * Cuts a broker off from the others; clients on this host still reach it, and it still takes itself for the leader of
   * what it led. Null where brokers are processes: they share one network.
   */
  readonly network: { disconnect(id: number): Promise<void>; connect(id: number): Promise<void> } | null;
  /**
   * The ways to the brokers that a party of `ClusterOptions.parties` has for itself. `brokers` is one where brokers are
   * processes: how they fetch from each other, the controllers apart. Throws on another name.
   */
  party(name: string): PartyLinks;
  /** The file system of the last member where `ClusterOptions.smallDiskMb` was asked for and can be had, else null. */
  readonly smallDisk: SmallDisk | null;
  /** The bootstrap servers as `runTool` reaches them. */
  readonly toolBootstrap: string;
  /**
   * One of Kafka's scripts by its name without `.sh` (`kafka-topics`), where brokers run; it ends on its own or after
   * `deadlineMs` (default 60 s). Resolves whatever its exit code is.
   */
  runTool(name: string, args: readonly string[], options?: ToolOptions): Promise<ToolResult>;
  /** Stops and removes everything. Idempotent. */
  stop(): Promise<void>;
}

export interface ToolOptions {
  /** For its standard input. */
  readonly input?: string;
  readonly deadlineMs?: number;
}

export interface ClusterOptions {
  /** Default 3. */
  readonly brokers?: number;
  /** Of `server.properties`, over those for tests. */
  readonly overrides?: Readonly<Record<string, string>>;
  /** Of each broker; default 256 MB. */
  readonly heapMb?: number;
  /** Who gets ways to the brokers of its own, each behind a proxy that can cut it: letters and digits. */
  readonly parties?: readonly string[];
  /** Gives the last member a file system of this size, where this process is root on Linux. */
  readonly smallDiskMb?: number;
}

/** What a test's only broker is set to. */
export const SINGLE_BROKER: Readonly<Record<string, string>> = {
  'offsets.topic.replication.factor': '1',
  'offsets.topic.num.partitions': '3',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.min.isr': '1',
  'transaction.state.log.num.partitions': '3',
  'share.coordinator.state.topic.replication.factor': '1',
  'share.coordinator.state.topic.min.isr': '1',
  'group.initial.rebalance.delay.ms': '0',
  'auto.create.topics.enable': 'false',
};

/** What each member of a test cluster is set to: failures are noticed in 3 to 6 s instead of 9 to 30. */
export function clusterProperties(brokers: number): Readonly<Record<string, string>> {
  const replicas = String(Math.min(3, brokers));
  const minIsr = String(Math.max(1, Math.min(3, brokers) - 1));
  return {
    'default.replication.factor': replicas,
    'min.insync.replicas': minIsr,
    'offsets.topic.replication.factor': replicas,
    'offsets.topic.num.partitions': '3',
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': minIsr,
    'transaction.state.log.num.partitions': '3',
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': '1',
    'group.initial.rebalance.delay.ms': '0',
    'auto.create.topics.enable': 'false',
    // The controllers' own timeouts stay as they are: tighter ones flap on two cores.
    'broker.session.timeout.ms': '3000',
    'broker.heartbeat.interval.ms': '500',
    'replica.lag.time.max.ms': '3000',
    'replica.fetch.wait.max.ms': '200',
    // Else a follower hangs up to 30 s on a leader that stands still.
    'replica.socket.timeout.ms': '2000',
    'controller.socket.timeout.ms': '2000',
    // Leaders move when a test moves them.
    'auto.leader.rebalance.enable': 'false',
  };
}

/** The listeners of a broker for parties, as its properties name them. */
export function partyProperties(
  base: Readonly<Record<string, string>>,
  listeners: readonly { readonly name: string; readonly bind: string; readonly advertised: string }[],
): Readonly<Record<string, string>> {
  if (listeners.length === 0) return base;
  const add = (name: string, values: readonly string[]): string => [base[name], ...values].join(',');
  return {
    ...base,
    listeners: add(
      'listeners',
      listeners.map(({ name, bind }) => `${name}://${bind}`),
    ),
    'advertised.listeners': add(
      'advertised.listeners',
      listeners.map(({ name, advertised }) => `${name}://${advertised}`),
    ),
    'listener.security.protocol.map': add(
      'listener.security.protocol.map',
      listeners.map(({ name }) => `${name}:PLAINTEXT`),
    ),
    // Each listener has its own.
    'num.network.threads': '1',
  };
}

export function findMember(members: readonly KafkaBroker[], id: number): KafkaBroker {
  const found = members.find((member) => member.id === id);
  if (found === undefined)
    throw new RangeError(`no broker ${id}; there are ${members.map((member) => member.id).join(', ')}`);
  return found;
}
