/** Produce, Fetch, ListOffsets, InitProducerId: what records need. */
import type { Offset } from '@throughline/protocol';
import type { WireCall } from './call.ts';
import { KAFKA_ERRORS, makeCall } from './call.ts';

/** Includes records of open and aborted transactions: what is in the log is in the log, for every reader the same. */
const READ_UNCOMMITTED = 0;

export interface Produced {
  readonly error: number;
  readonly baseOffset: Offset;
  /** −1 where the topic keeps the producer's time. */
  readonly appendTimeMs: number;
}

/** Produce version 7, to one partition, acks from all replicas in sync. */
export function produceCall(topic: string, partition: number, batch: Buffer, timeoutMs: number): WireCall<Produced> {
  return makeCall(
    { key: 0, name: 'Produce', version: 7 },
    (writer) => {
      writer.nullableString(null).int16(-1).int32(timeoutMs);
      writer.int32(1).string(topic).int32(1).int32(partition).bytes(batch);
    },
    (answer) => {
      const [produced] = answer
        .array(() => {
          answer.string();
          return answer.array(() => {
            answer.int32();
            const result = { error: answer.int16(), baseOffset: answer.int64(), appendTimeMs: answer.int64() };
            answer.int64();
            return result;
          });
        })
        .flat();
      if (produced === undefined) throw new RangeError('a produce answer without a partition');
      return produced;
    },
  );
}

export interface Fetched {
  readonly error: number;
  readonly highWatermark: Offset;
  readonly logStart: Offset;
  readonly batches: Buffer;
}

export interface FetchOptions {
  readonly maxWaitMs: number;
  readonly maxBytes: number;
}

/** Fetch version 11, of one partition, without a fetch session. */
export function fetchCall(topic: string, partition: number, offset: Offset, options: FetchOptions): WireCall<Fetched> {
  return makeCall(
    { key: 1, name: 'Fetch', version: 11 },
    (writer) => {
      writer.int32(-1).int32(options.maxWaitMs).int32(1).int32(options.maxBytes).int8(READ_UNCOMMITTED);
      writer.int32(0).int32(-1);
      writer.int32(1).string(topic).int32(1);
      writer.int32(partition).int32(-1).int64(offset).int64(-1).int32(options.maxBytes);
      writer.int32(0).string('');
    },
    (answer) => {
      answer.int32();
      const error = answer.int16();
      answer.int32();
      const [fetched] = answer
        .array(() => {
          answer.string();
          return answer.array(() => {
            answer.int32();
            const partitionError = answer.int16();
            const highWatermark = answer.int64();
            answer.int64();
            const logStart = answer.int64();
            answer.array(() => [answer.bigInt64(), answer.bigInt64()]);
            answer.int32();
            return { error: partitionError, highWatermark, logStart, batches: answer.bytes() };
          });
        })
        .flat();
      const isEmpty = fetched === undefined || (fetched.error === 0 && fetched.highWatermark < 0);
      // A broker whose quota is used up says nothing of the partition: not that it is empty, nor where it ends.
      if (isEmpty) {
        const code = error === 0 ? KAFKA_ERRORS.THROTTLING_QUOTA_EXCEEDED : error;
        return { error: code, highWatermark: -1, logStart: -1, batches: Buffer.alloc(0) };
      }
      return error === 0 ? fetched : { ...fetched, error };
    },
  );
}

export const EARLIEST = -2;
export const LATEST = -1;

/** ListOffsets version 2. */
export function listOffsetCall(
  topic: string,
  partition: number,
  which: typeof EARLIEST | typeof LATEST,
): WireCall<{ error: number; offset: Offset }> {
  return makeCall(
    { key: 2, name: 'ListOffsets', version: 2 },
    (writer) => {
      writer.int32(-1).int8(READ_UNCOMMITTED);
      writer.int32(1).string(topic).int32(1).int32(partition).int64(which);
    },
    (answer) => {
      answer.int32();
      const [listed] = answer
        .array(() => {
          answer.string();
          return answer.array(() => {
            answer.int32();
            const error = answer.int16();
            answer.int64();
            return { error, offset: answer.int64() };
          });
        })
        .flat();
      if (listed === undefined) throw new RangeError('a ListOffsets answer without a partition');
      return listed;
    },
  );
}

/** InitProducerId version 1, without a transactional id. */
export function initProducerCall(): WireCall<{ error: number; producerId: bigint; producerEpoch: number }> {
  return makeCall(
    { key: 22, name: 'InitProducerId', version: 1 },
    (writer) => writer.nullableString(null).int32(60_000),
    (answer) => {
      answer.int32();
      return { error: answer.int16(), producerId: answer.bigInt64(), producerEpoch: answer.int16() };
    },
  );
}
