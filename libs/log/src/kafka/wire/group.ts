/** Consumer groups: the classic protocol, which Kafka 2.4 to 4.x serve and all of Kafka's tools show. */
import { ByteReader, ByteWriter } from './bytes.ts';
import type { WireCall } from './call.ts';
import { makeCall } from './call.ts';

/** FindCoordinator version 1, of a group. */
export function findCoordinatorCall(
  group: string,
): WireCall<{ error: number; node: number; host: string; port: number }> {
  return makeCall(
    { key: 10, name: 'FindCoordinator', version: 1 },
    (writer) => writer.string(group).int8(0),
    (answer) => {
      answer.int32();
      const error = answer.int16();
      answer.nullableString();
      return { error, node: answer.int32(), host: answer.string(), port: answer.int32() };
    },
  );
}

export interface Joined {
  readonly error: number;
  readonly generation: number;
  readonly leader: string;
  readonly memberId: string;
  /** Given to the leader alone. */
  readonly members: readonly { readonly memberId: string; readonly metadata: Buffer }[];
}

/** JoinGroup version 4. */
export function joinGroupCall(join: {
  readonly group: string;
  readonly memberId: string;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly protocol: string;
  readonly metadata: Buffer;
}): WireCall<Joined> {
  return makeCall(
    { key: 11, name: 'JoinGroup', version: 4 },
    (writer) => {
      writer.string(join.group).int32(join.sessionTimeoutMs).int32(join.rebalanceTimeoutMs).string(join.memberId);
      writer.string('consumer').int32(1).string(join.protocol).bytes(join.metadata);
    },
    (answer) => {
      answer.int32();
      const error = answer.int16();
      const generation = answer.int32();
      answer.nullableString();
      return {
        error,
        generation,
        leader: answer.string(),
        memberId: answer.string(),
        members: answer.array(() => ({ memberId: answer.string(), metadata: answer.bytes() })),
      };
    },
  );
}

interface Seat {
  readonly group: string;
  readonly generation: number;
  readonly memberId: string;
}

/** SyncGroup version 2. `assignments` from the leader, empty from the others. */
export function syncGroupCall(
  seat: Seat,
  assignments: ReadonlyMap<string, Buffer>,
): WireCall<{ error: number; assignment: Buffer }> {
  return makeCall(
    { key: 14, name: 'SyncGroup', version: 2 },
    (writer) => {
      writer.string(seat.group).int32(seat.generation).string(seat.memberId);
      writer.array([...assignments], ([memberId, bytes]) => writer.string(memberId).bytes(bytes));
    },
    (answer) => {
      answer.int32();
      return { error: answer.int16(), assignment: answer.bytes() };
    },
  );
}

/** Heartbeat version 2. */
export function heartbeatCall(seat: Seat): WireCall<{ error: number }> {
  return makeCall(
    { key: 12, name: 'Heartbeat', version: 2 },
    (writer) => writer.string(seat.group).int32(seat.generation).string(seat.memberId),
    (answer) => {
      answer.int32();
      return { error: answer.int16() };
    },
  );
}

/** LeaveGroup version 2. */
export function leaveGroupCall(seat: Seat): WireCall<{ error: number }> {
  return makeCall(
    { key: 13, name: 'LeaveGroup', version: 2 },
    (writer) => writer.string(seat.group).string(seat.memberId),
    (answer) => {
      answer.int32();
      return { error: answer.int16() };
    },
  );
}

/** OffsetCommit version 5: fenced by generation and member, not by assignment. */
export function offsetCommitCall(
  seat: Seat,
  topic: string,
  partition: number,
  offset: number,
): WireCall<{ error: number }> {
  return makeCall(
    { key: 8, name: 'OffsetCommit', version: 5 },
    (writer) => {
      writer.string(seat.group).int32(seat.generation).string(seat.memberId);
      writer.int32(1).string(topic).int32(1).int32(partition).int64(offset).nullableString('');
    },
    (answer) => {
      answer.int32();
      const [error = -1] = answer
        .array(() => {
          answer.string();
          return answer.array(() => {
            answer.int32();
            return answer.int16();
          });
        })
        .flat();
      return { error };
    },
  );
}

/** OffsetFetch version 5. Partitions of which nothing was committed have the offset -1. */
export function offsetFetchCall(
  group: string,
  topic: string,
  partitions: readonly number[],
): WireCall<{ error: number; offsets: readonly { partition: number; offset: number; error: number }[] }> {
  return makeCall(
    { key: 9, name: 'OffsetFetch', version: 5 },
    (writer) => {
      writer.string(group).int32(1).string(topic);
      writer.array(partitions, (partition) => writer.int32(partition));
    },
    (answer) => {
      answer.int32();
      const offsets = answer
        .array(() => {
          answer.string();
          return answer.array(() => {
            const partition = answer.int32();
            const offset = answer.int64();
            answer.int32();
            answer.nullableString();
            return { partition, offset, error: answer.int16() };
          });
        })
        .flat();
      return { error: answer.int16(), offsets };
    },
  );
}

export interface DescribedGroup {
  readonly error: number;
  /** `Stable`, `PreparingRebalance`, `CompletingRebalance`, `Empty`, `Dead`. */
  readonly state: string;
  readonly members: readonly {
    readonly memberId: string;
    readonly clientId: string;
    readonly host: string;
    readonly assignment: Buffer;
  }[];
}

/** DescribeGroups version 1, of one group. */
export function describeGroupCall(group: string): WireCall<DescribedGroup> {
  return makeCall(
    { key: 15, name: 'DescribeGroups', version: 1 },
    (writer) => writer.array([group], (each) => writer.string(each)),
    (answer) => {
      answer.int32();
      const [described] = answer.array(() => {
        const error = answer.int16();
        answer.string();
        const state = answer.string();
        answer.string();
        answer.string();
        const members = answer.array(() => {
          const member = { memberId: answer.string(), clientId: answer.string(), host: answer.string() };
          answer.bytes();
          return { ...member, assignment: answer.bytes() };
        });
        return { error, state, members };
      });
      if (described === undefined) throw new RangeError('a DescribeGroups answer without a group');
      return described;
    },
  );
}

/** What a member says when it joins: version 0 of the consumer protocol, with data of our own. */
export function encodeSubscription(topic: string, userData: Uint8Array): Buffer {
  return new ByteWriter().int16(0).int32(1).string(topic).bytes(userData).done();
}

export function decodeSubscription(bytes: Buffer): Buffer {
  const reader = new ByteReader(bytes);
  reader.int16();
  reader.array(() => reader.string());
  return reader.left >= 4 ? reader.bytes() : Buffer.alloc(0);
}

/** What the leader gives to a member, readable for Kafka's tools. */
export function encodeAssignment(topic: string, partitions: readonly number[]): Buffer {
  const writer = new ByteWriter().int16(0);
  writer
    .int32(1)
    .string(topic)
    .array(partitions, (partition) => writer.int32(partition));
  return writer.bytes(new Uint8Array(0)).done();
}

export function decodeAssignment(bytes: Buffer, topic: string): number[] {
  if (bytes.length < 6) return [];
  const reader = new ByteReader(bytes);
  reader.int16();
  const assigned = reader.array(() => ({ name: reader.string(), partitions: reader.array(() => reader.int32()) }));
  return (assigned.find(({ name }) => name === topic)?.partitions ?? []).sort((a, b) => a - b);
}
