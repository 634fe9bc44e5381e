/**
 * What a call that is run again knows of its first run: nothing until that was read, then what was said and answered.
 * Answers that the client gives meanwhile wait here. Plain state. SPEC: WRK-MEMORY, WRK-MEMORY-BOUND.
 */
import type { ReplayMemory } from '@throughline/history';
import type { JsonRpcId, JsonRpcResponse } from '@throughline/protocol';

/** Messages that a first run may have said, so that it is remembered. */
export const MAX_MESSAGES = 1000;
/** Characters of them, and of what the client answered. */
const MAX_CHARS = 1024 * 1024;

export class CallMemory {
  /** `null`: it is still being read. */
  replay: ReplayMemory | null = null;
  readonly #early = new Map<JsonRpcId, JsonRpcResponse>();
  #messages = 0;
  #chars = 0;
  #earlyChars = 0;
  /** Of answers that came early some were not kept. */
  #lostEarly = false;

  /** More was said and answered than is remembered: it must not be run. */
  get hasOverflowed(): boolean {
    return this.#messages > MAX_MESSAGES || this.#chars > MAX_CHARS || this.#lostEarly;
  }

  /** Counts one more message; `false` from the first on that is too much. */
  fits(chars: number): boolean {
    this.#messages++;
    this.#chars += chars;
    return !this.hasOverflowed;
  }

  /** Keeps an answer until it is known to what, and counts if it is one of this call; the first one to a question counts. */
  keep(answer: JsonRpcResponse): void {
    if (answer.id === null || this.#early.has(answer.id) || this.#lostEarly) return;
    this.#earlyChars += JSON.stringify(answer).length;
    this.#lostEarly = this.#early.size >= MAX_MESSAGES || this.#earlyChars > MAX_CHARS;
    if (!this.#lostEarly) this.#early.set(answer.id, answer);
  }

  /** What was kept, in the order in which it came; nothing is kept any more. */
  takeEarly(): readonly JsonRpcResponse[] {
    const early = [...this.#early.values()];
    this.#early.clear();
    return early;
  }
}
