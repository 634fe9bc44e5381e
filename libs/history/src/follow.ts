/**
 * What a connection does with each accepted record of its session, in log order: the state machine of one SSE
 * connection on one stream. Newest attachment wins, decided by log order on any replica. SPEC: RES-FOLLOW, RES-NEWEST.
 */
import { STANDALONE } from '@throughline/protocol';
import type { EventRecord, StreamLabel, StreamTarget } from '@throughline/protocol';

export interface Following {
  readonly stream: StreamLabel;
  /** The attachment this connection made; `null` if it is attached from the start (a POST's own stream). */
  readonly attachment: string | null;
  /** Whether this connection's own attachment has been met. */
  readonly attached: boolean;
}

export type FollowStep =
  | { readonly do: 'skip' }
  /** Write it as an SSE event; `end`: it is the stream's last. */
  | { readonly do: 'deliver'; readonly end: boolean }
  /** The stream is over without a further message. */
  | { readonly do: 'finish' }
  /** Another connection has the stream now. */
  | { readonly do: 'superseded' }
  /** The server wants the connection closed for now; the stream goes on. */
  | { readonly do: 'close' }
  | { readonly do: 'session-ended' }
  /** The border between replayed and live: this connection's own attachment. */
  | { readonly do: 'live' };

const SKIP: FollowStep = { do: 'skip' };

export function startFollowing(stream: StreamLabel, attachment: string | null): Following {
  return { stream, attachment, attached: attachment === null };
}

function concerns(target: StreamTarget, stream: StreamLabel): boolean {
  if (target === STANDALONE) return stream.kind === 'standalone';
  return target.kind === stream.kind && target.at === stream.at;
}

export function follow(state: Following, event: EventRecord): readonly [Following, FollowStep] {
  const { body } = event;
  const { stream } = state;
  switch (body.type) {
    case 'message':
      return [
        state,
        concerns(body.stream, stream) ? { do: 'deliver', end: body.end && stream.kind === 'request' } : SKIP,
      ];
    case 'attached': {
      if (body.stream === STANDALONE && stream.kind === 'standalone') {
        // A later plain attachment opens another standalone stream: this one is over.
        if (event.offset > stream.at) return [state, { do: 'finish' }];
        if (event.offset < stream.at) return [state, SKIP];
        return body.attachment === state.attachment ? [{ ...state, attached: true }, { do: 'live' }] : [state, SKIP];
      }
      if (!concerns(body.stream, stream)) return [state, SKIP];
      if (body.attachment === state.attachment) return [{ ...state, attached: true }, { do: 'live' }];
      return [state, state.attached ? { do: 'superseded' } : SKIP];
    }
    case 'closed':
      return [state, state.attached && concerns(body.stream, stream) ? { do: 'close' } : SKIP];
    case 'ended':
      return [state, concerns(body.stream, stream) ? { do: 'finish' } : SKIP];
    case 'sessionEnded':
      return [state, { do: 'session-ended' }];
    case 'alias':
    case 'started':
    case 'claimed':
    case 'checkpoint':
    case 'released':
    case 'probe':
      return [state, SKIP];
  }
}

/** What lies in a session before a new standalone attachment. */
export interface StandaloneHistory {
  readonly newestAttachment: number | null;
  readonly firstMessage: number | null;
}

export const NO_STANDALONE_HISTORY: StandaloneHistory = { newestAttachment: null, firstMessage: null };

export function foldStandalone(history: StandaloneHistory, event: EventRecord): StandaloneHistory {
  const { body, offset } = event;
  if (body.type === 'attached' && body.stream === STANDALONE) return { ...history, newestAttachment: offset };
  if (body.type === 'message' && body.stream === STANDALONE && history.firstMessage === null)
    return { ...history, firstMessage: offset };
  return history;
}

/**
 * Whether a new standalone stream begins at the session's start (so that what the server said before the client
 * listened is not lost) instead of at its own attachment: if there is no earlier attachment, or no standalone message
 * lies before the newest earlier one.
 */
export function beginsAtSessionStart({ newestAttachment, firstMessage }: StandaloneHistory): boolean {
  return newestAttachment === null || firstMessage === null || firstMessage > newestAttachment;
}
