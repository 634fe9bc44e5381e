/** What happened to the requests of a partition: a fold over accepted records of `events[p]`. SPEC: REQ-*. */
import type { Checkpoint, EventRecord, Offset } from '@throughline/protocol';
import { STANDALONE } from '@throughline/protocol';

export interface RequestState {
  /** How often it was started. */
  attempt: number;
  /** Whether a message other than its answer was sent on its stream. */
  sent: boolean;
  /** Whether its stream has ended. */
  ended: boolean;
}

/**
 * The requests that are open, or were settled since the fold began. Keys are offsets N of `inbound`: the stream r<N>.
 * Members of a batch share the stream of the first; their answers name the member.
 */
export class RequestLedger {
  readonly #states = new Map<Offset, RequestState>();

  constructor(checkpoint: Checkpoint | null) {
    for (const { at, attempt, sent } of checkpoint?.open ?? []) this.#states.set(at, { attempt, sent, ended: false });
  }

  /** Folds an accepted record. */
  fold(event: EventRecord): void {
    const { body } = event;
    if (body.type === 'started') {
      const state = this.#state(body.stream.at);
      state.attempt = Math.max(state.attempt, body.attempt);
    } else if (body.type === 'ended') {
      this.#state(body.stream.at).ended = true;
    } else if (body.type === 'message') {
      // Whoever of them asked it has spoken.
      if (body.among === 'unknown') for (const state of this.#states.values()) state.sent = true;
      else for (const at of body.among) this.#state(at).sent = true;
      if (body.stream === STANDALONE) {
        // What a producer asked to be said has been said.
        if (body.answers !== null) this.#state(body.answers).ended = true;
        return;
      }
      if (body.answers !== null) {
        // An answer ends its member; it is not something that another member of the batch sent.
        this.#state(body.answers).ended = true;
        return;
      }
      const state = this.#state(body.stream.at);
      state.sent = true;
      if (body.end) state.ended = true;
    }
  }

  /**
   * What is known of the request at `at`.
   * @param streamAt N of its stream r<N>, if it is a later member of a batch: what was sent there and is no answer may
   * have been sent by any of the members, so it counts as sent by each.
   */
  get(at: Offset, streamAt: Offset = at): Readonly<RequestState> | undefined {
    const own = this.#states.get(at);
    if (this.#states.get(streamAt)?.sent !== true) return own;
    return { attempt: own?.attempt ?? 0, ended: own?.ended ?? false, sent: true };
  }

  forget(at: Offset): void {
    this.#states.delete(at);
  }

  /** Forgets every request below `at`: late messages of streams that ended leave nothing behind. */
  forgetBelow(at: Offset): void {
    for (const known of this.#states.keys()) if (known < at) this.#states.delete(known);
  }

  #state(at: Offset): RequestState {
    let state = this.#states.get(at);
    if (state === undefined) {
      state = { attempt: 0, sent: false, ended: false };
      this.#states.set(at, state);
    }
    return state;
  }
}
