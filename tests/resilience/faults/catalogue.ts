/** Every fault, in the order of the table. */
import {
  ALL_BROKERS_GONE,
  BROKER_KILLED,
  BROKER_PAUSED,
  BROKERS_CUT,
  CLUSTER_RESTARTED,
  COORDINATOR_KILLED,
  DISK_FULL,
} from './brokers.ts';
import { cutNetwork, refuseNetwork } from './cut-network.ts';
import type { Fault } from './fault.ts';
import { killAll, killProcess } from './kill-process.ts';
import { COORDINATOR_MOVED, LEADERS_MOVED } from './leaders.ts';
import { PARTITIONS_ADDED, RETENTION, TOPICS_RECREATED } from './lost-records.ts';
import { stopProcess } from './stop-process.ts';
import { UNCLEAN_ELECTION } from './unclean-election.ts';

const NETWORKS = (['clients and gateway', 'gateway and brokers', 'worker and brokers'] as const).flatMap((between) => [
  cutNetwork(between, 'to-server'),
  cutNetwork(between, 'to-client'),
  cutNetwork(between, 'both'),
  refuseNetwork(between),
]);

export const FAULTS: readonly Fault[] = [
  killProcess('gateway'),
  killProcess('worker'),
  stopProcess('gateway'),
  stopProcess('worker'),
  killAll('gateway'),
  killAll('worker'),
  ...NETWORKS,
  LEADERS_MOVED,
  COORDINATOR_MOVED,
  BROKER_KILLED,
  COORDINATOR_KILLED,
  BROKER_PAUSED,
  BROKERS_CUT,
  DISK_FULL,
  ALL_BROKERS_GONE,
  CLUSTER_RESTARTED,
  PARTITIONS_ADDED,
  RETENTION,
  TOPICS_RECREATED,
  UNCLEAN_ELECTION,
];
