/** What is concluded about an event or an answer that came. SPEC: CLIENT-JUDGE. */
import type { ResumptionReason } from '@throughline/protocol';
import type { StreamCheckpoint } from './stream-checkpoint.ts';

export interface ReceivedEvent {
  /** `null`: it has none. */
  readonly id: string | null;
  /** Its payload; empty if the event only moves the cursor. */
  readonly data: string;
}

/** Why a stream cannot be taken for the continuation of what was processed. The first seven are also said by servers. */
export type RejectionReason =
  | ResumptionReason
  /** The server does not know the session any more, or answered a resume with a refusal. */
  | 'session-invalid'
  /** The answer names another session. */
  | 'session-changed'
  /** Events at or below the last one came again. */
  | 'replay-reset'
  /** An event of another stream, session or call. */
  | 'foreign-event'
  /** An id that is none of this server's, or none at all, where ids were a proof so far. */
  | 'malformed-id'
  /** Under the policy `strict`: nothing proves that the stream goes on where it stopped. */
  | 'unproven';

/** What must be known for a resumed stream to count as continuous. */
export type Fact =
  /** The answer is of the same session. */
  | 'session'
  /** The history behind it was not reset. */
  | 'epoch'
  /** Nothing lies between the last event and this one. */
  | 'sequence'
  /** What was processed before is what the server holds. */
  | 'content';

/**
 * How a server numbers its events. `chained`: the ids of Throughline. `consecutive`: each is the one before plus 1, in
 * each stream. `opaque`: nothing can be told from an id but whether it came before.
 */
export type Numbering = 'chained' | 'consecutive' | 'opaque';

export type Rejected = { readonly do: 'reject'; readonly reason: RejectionReason; readonly detail: string };

export type EventVerdict =
  | {
      /** It goes on where the stream stopped: hand it over, then take `next` for the checkpoint. */
      readonly do: 'deliver';
      readonly next: StreamCheckpoint;
      /** What could not be proved. Empty on a chained stream. */
      readonly unproven: readonly Fact[];
    }
  /** Only the cursor moves. */
  | { readonly do: 'advance'; readonly next: StreamCheckpoint }
  /** The last event again, identical by its digest: it was processed. */
  | { readonly do: 'drop' }
  | Rejected;

export function reject(reason: RejectionReason, detail: string): Rejected {
  return { do: 'reject', reason, detail };
}
