/**
 * Who owns a partition: a fold over `events[p]` for one epoch. Every reader derives the same claims and accepts the
 * same records, wherever it starts. SPEC: CLM-*.
 */
import type { EventRecord, Offset } from '@throughline/protocol';

export interface OwnerState {
  readonly claim: Offset;
  readonly worker: string;
  readonly released: boolean;
}

export type Verdict = 'accepted' | 'fenced';

/**
 * The valid claims of one partition and epoch, and the verdict on each record. Records are folded in log order, from
 * the start of the log, or from a position for which the claims up to there are known (a checkpoint hint).
 */
export class ClaimHistory {
  readonly #epoch: string;
  readonly #claims: Offset[];
  #worker: string;
  #released = false;
  #floor: Offset;

  /**
   * @param claims valid claims at or before the starting position, rising.
   * @param worker who made the newest of them.
   */
  constructor(epoch: string, claims: readonly Offset[] = [], worker = '') {
    this.#epoch = epoch;
    this.#worker = worker;
    this.#claims = [...claims];
    // A list given from outside may have been trimmed by whoever wrote it.
    this.#floor = claims[0] ?? 0;
  }

  /** The claim in force after the last folded record; `null` if nobody ever claimed. */
  owner(): OwnerState | null {
    const claim = this.#claims.at(-1);
    return claim === undefined ? null : { claim, worker: this.#worker, released: this.#released };
  }

  /**
   * Where verdicts begin: below it claims were forgotten, so that a record with an owner cannot be told from a fenced one.
   * Whoever still holds such a record (read before it was evicted) must treat it as evicted.
   */
  floor(): Offset {
    return this.#floor;
  }

  /** All valid claims known, rising: what a checkpoint lists. */
  list(): readonly Offset[] {
    return [...this.#claims];
  }

  /** The claim in force at `offset`: the newest one at or before it. */
  inForceAt(offset: Offset): Offset | null {
    let low = 0;
    let high = this.#claims.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#claims[middle] ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? null : (this.#claims[low - 1] ?? null);
  }

  /** Folds the next record in log order. */
  fold(event: EventRecord): Verdict {
    const { body } = event;
    const inForce = this.#claims.at(-1) ?? null;
    if (body.type === 'claimed') {
      if (inForce !== null && event.offset <= inForce) {
        // Known already from the claim list: learn who it is.
        if (event.offset < inForce) return this.#claims.includes(event.offset) ? 'accepted' : 'fenced';
        this.#worker = body.worker;
        return 'accepted';
      }
      if (body.epoch !== this.#epoch || body.predecessor !== inForce) return 'fenced';
      this.#claims.push(event.offset);
      this.#worker = body.worker;
      this.#released = false;
      return 'accepted';
    }
    const verdict = this.judge(event);
    if (verdict === 'accepted' && body.type === 'released' && event.owner === inForce) this.#released = true;
    return verdict;
  }

  /** The verdict on a record at or before the last folded one, by the claim in force at its place. Changes nothing. */
  judge(event: EventRecord): Verdict {
    const { body } = event;
    if (body.type === 'claimed') return this.#claims.includes(event.offset) ? 'accepted' : 'fenced';
    return event.owner === null || event.owner === this.inForceAt(event.offset) ? 'accepted' : 'fenced';
  }

  /**
   * Whether `event`, fenced, claims from before the claim in force, and that one lies below `start`: retention has taken it,
   * and who never read it takes `event` for the next claim.
   */
  isPassedBy({ body }: EventRecord, start: Offset): boolean {
    const inForce = this.#claims.at(-1);
    if (body.type !== 'claimed' || body.epoch !== this.#epoch || inForce === undefined) return false;
    return inForce < start && (body.predecessor === null || body.predecessor < inForce);
  }

  /** Forgets claims that no record at or after `start` needs: all before the one in force at `start`. */
  trim(start: Offset): void {
    const needed = this.inForceAt(start);
    if (needed === null || needed === this.#claims[0]) return;
    this.#claims.splice(0, this.#claims.indexOf(needed));
    this.#floor = needed;
  }
}
