/**
 * Bounds the memory that POST bodies take at once, over all requests and for each share: each may be large, and there
 * may be many. What came counts, not what was announced: a silent socket takes nothing from others. SPEC: GW-LIMIT,
 * GW-BODY-SHARE.
 */
import { once } from '../once.ts';
import type { ShareKey } from '../principal-limits.ts';

export interface BodyBudgetOptions {
  /** Bytes over all requests. */
  readonly most: number;
  /** Bytes of one share; those without a share have only {@link most}. */
  readonly mostOfShare: number;
}

/** Whose bound a body would be beyond: that of its own share, or that of all. */
export type BodyExcess = 'share' | 'all';

export interface BodyRoom {
  /** Takes so many bytes more, or says why not and takes none. */
  grow(bytes: number): BodyExcess | null;
  /** Gives all of it back; nothing can be taken afterwards. Idempotent. */
  release(): void;
}

export class BodyBudget {
  readonly #options: BodyBudgetOptions;
  #held = 0;
  readonly #heldBy = new Map<string, number>();

  constructor(options: BodyBudgetOptions) {
    this.#options = options;
  }

  /** What `bytes` more would be beyond now; `null`: nothing. */
  excessOf(share: ShareKey, bytes: number): BodyExcess | null {
    const { most, mostOfShare } = this.#options;
    if (share !== null && (this.#heldBy.get(share) ?? 0) + bytes > mostOfShare) return 'share';
    return this.#held + bytes > most ? 'all' : null;
  }

  /** Room for one body, empty at first. */
  open(share: ShareKey): BodyRoom {
    let held = 0;
    let isOpen = true;
    return {
      grow: (bytes) => {
        if (!isOpen) throw new TypeError('the room of a body that is over does not grow');
        const excess = this.excessOf(share, bytes);
        if (excess !== null) return excess;
        held += bytes;
        this.#add(share, bytes);
        return null;
      },
      release: once(() => {
        isOpen = false;
        this.#add(share, -held);
      }),
    };
  }

  #add(share: ShareKey, bytes: number): void {
    this.#held += bytes;
    if (share === null) return;
    const left = (this.#heldBy.get(share) ?? 0) + bytes;
    if (left === 0) this.#heldBy.delete(share);
    else this.#heldBy.set(share, left);
  }
}
