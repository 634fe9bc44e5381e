/**
 * Where a new standalone stream begins: at the session's start, so that what the server said before the client listened
 * is not lost, or at its own attachment. Told by what lies between in the log; what was read once is not read again.
 * SPEC: GW-LISTEN.
 */
import { beginsAtSessionStart, foldStandalone, NO_STANDALONE_HISTORY } from '@throughline/history';
import type { StandaloneHistory } from '@throughline/history';
import type { Offset, SessionId } from '@throughline/protocol';
import type { PartitionTail } from '@throughline/tail';

interface Known {
  /** Everything of the session below is in `history`. */
  readonly upTo: Offset;
  readonly history: StandaloneHistory;
}

export type StandaloneDecision = 'at-session-start' | 'at-attachment' | 'not-read-in-time';

/** Sessions whose history is kept; a forgotten one is read again. */
const MAX_SESSIONS = 10_000;

export class StandaloneStart {
  readonly #known = new Map<string, Known>();

  /** Reads until `attachedAt` at most, or until `signal` fires. */
  async decide(
    tail: PartitionTail,
    { key, from }: SessionId,
    attachedAt: Offset,
    signal: AbortSignal,
  ): Promise<StandaloneDecision> {
    if (!(await tail.reached(attachedAt + 1, signal))) return 'not-read-in-time';
    if (tail.bounds().start > from) return 'at-attachment';
    let { history, upTo } = this.#known.get(key) ?? { history: NO_STANDALONE_HISTORY, upTo: from };
    const cursor = tail.cursor(key, upTo);
    // A message before the newest attachment stays before it: then no more needs to be read.
    while (upTo < attachedAt && beginsAtSessionStart(history)) {
      const result = await cursor.next(signal, 0);
      if (result.kind === 'stopped') return 'not-read-in-time';
      if (result.kind === 'gap') return 'at-attachment';
      for (const { event } of result.kind === 'events' ? result.events : [])
        if (event.offset < attachedAt) history = foldStandalone(history, event);
      upTo = Math.min(cursor.position(), attachedAt);
      this.#remember(key, { upTo, history });
    }
    return beginsAtSessionStart(history) ? 'at-session-start' : 'at-attachment';
  }

  #remember(key: string, known: Known): void {
    this.#known.delete(key);
    this.#known.set(key, known);
    if (this.#known.size <= MAX_SESSIONS) return;
    const oldest = this.#known.keys().next();
    if (oldest.done !== true) this.#known.delete(oldest.value);
  }
}
