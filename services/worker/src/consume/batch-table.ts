/**
 * Batches of 2025-03-26: their members share the stream of the first, which ends when all of them were seen and all
 * requests among them answered. Pure state. SPEC: WRK-BATCH-END.
 */
import type { BatchPlace, JsonRpcId, Offset } from '@throughline/protocol';

export interface BatchState {
  readonly first: Offset;
  readonly key: string;
  readonly count: number;
  seen: number;
  requests: number;
  answered: number;
  /** Every member was finished under a former owner, and so was the stream. */
  isPast: boolean;
  /** The end of the stream was written. */
  hasEnded: boolean;
  /** By place, as far as the records tell them; `null` where a member is no request. */
  readonly ids: readonly (JsonRpcId | null)[];
  /** Places of members that were not read here: finished, evicted, or never written. Whoever has dealt with them takes them out. */
  readonly skipped: number[];
  /** Streams whose messages, answers aside, were copied here for a repeated batch: once, not once a member. */
  readonly copied: Set<Offset>;
}

/** Whether all that is to come on the stream has come. */
export function isComplete(batch: BatchState): boolean {
  return batch.seen === batch.count && batch.answered === batch.requests;
}

export class BatchTable {
  readonly #batches = new Map<Offset, BatchState>();

  /**
   * Sees the member `index` of `count` at `offset`.
   * @param hasEnded whether a former owner ended the stream, if it is the first member.
   */
  see(
    key: string,
    offset: Offset,
    { index, count, ids = [] }: BatchPlace,
    isPast: boolean,
    hasEnded: boolean,
  ): BatchState {
    const first = offset - index;
    let batch = this.#batches.get(first);
    if (batch === undefined) {
      batch = {
        first,
        key,
        count,
        ids,
        seen: 0,
        requests: 0,
        answered: 0,
        isPast: true,
        hasEnded,
        skipped: [],
        copied: new Set(),
      };
      this.#batches.set(first, batch);
    }
    skip(batch, index);
    batch.seen = index + 1;
    batch.isPast &&= isPast;
    return batch;
  }

  /** Takes out a batch whose members were all seen; `false` as long as some are missing. */
  close(batch: BatchState): boolean {
    if (batch.seen < batch.count) return false;
    this.#batches.delete(batch.first);
    return true;
  }

  /** Takes out batches of which a further record shows that members are missing: a producer wrote only a part. `first`: the batch that the record belongs to. */
  broken(first: Offset | null): readonly BatchState[] {
    const broken = [...this.#batches.values()].filter((batch) => batch.first !== first);
    for (const batch of broken) {
      this.#batches.delete(batch.first);
      skip(batch, batch.count);
    }
    return broken;
  }
}

/** Members before `place` that were left out are not awaited any more. */
function skip(batch: BatchState, place: number): void {
  for (; batch.seen < place; batch.seen++) batch.skipped.push(batch.seen);
}
