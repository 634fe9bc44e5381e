/** What a group committed, asked of its coordinator by a connection of its own: nobody has to be a member. */
import type { Offset, Partition } from '@throughline/protocol';
import { errorText, LogError } from '../errors.ts';
import type { ClusterMap } from './cluster-map.ts';
import type { Address, BrokerConnection } from './connection.ts';
import { brokerFailure } from './kafka-failure.ts';
import { findCoordinatorCall, offsetFetchCall } from './wire/group.ts';

const ANSWER_MS = 5000;

/** Errors: `LOG_UNAVAILABLE`. */
export async function fetchCommitted(
  { map, open }: { readonly map: ClusterMap; open(address: Address): BrokerConnection },
  group: string,
  topic: string,
  partitions: number,
): Promise<ReadonlyMap<Partition, Offset>> {
  let connection: BrokerConnection | null = null;
  try {
    const found = await map.callAny(findCoordinatorCall(group), ANSWER_MS);
    if (found.error !== 0) throw brokerFailure(`FindCoordinator of ${group}`, found.error);
    connection = open(found);
    const all = Array.from({ length: partitions }, (_, partition) => partition);
    const { error, offsets } = await connection.call(offsetFetchCall(group, topic, all), ANSWER_MS);
    const failed = error === 0 ? (offsets.find((each) => each.error !== 0)?.error ?? 0) : error;
    if (failed !== 0) throw brokerFailure(`OffsetFetch of ${group}`, failed);
    return new Map(offsets.filter(({ offset }) => offset >= 0).map(({ partition, offset }) => [partition, offset]));
  } catch (error) {
    const message = errorText(error);
    throw new LogError('LOG_UNAVAILABLE', `the committed offsets of ${group} are not known: ${message}`, {}, error);
  } finally {
    connection?.destroy();
  }
}
