/** What a client is told of a call that its server did not answer. */
import { wireError } from '@throughline/protocol';
import type { JsonRpcErrorObject } from '@throughline/protocol';

/** The worker that ran the call, or held its session, is gone. */
export function ownerLostError(mayHaveRun: boolean): JsonRpcErrorObject {
  const text = mayHaveRun
    ? 'The worker that ran this call is gone; it may have run'
    : 'The worker of this session is gone; this call did not run';
  return wireError('OWNER_LOST', text, { reason: 'owner-lost', mayHaveRun });
}

export function sessionEndedError(reason?: string): JsonRpcErrorObject {
  return wireError('SESSION_ENDED', 'The session has ended; start a new one with initialize', {
    reason: 'session-ended',
    mayHaveRun: true,
    ...(reason === undefined ? {} : { cause: reason }),
  });
}

/** The request repeats one that ran before, but what came of that cannot be told any more. */
export function outcomeLostError(): JsonRpcErrorObject {
  return wireError('OWNER_LOST', 'The request ran before; its outcome is no longer held', { mayHaveRun: true });
}

/** Retention took the request before an owner could serve it, or go on with it. */
export function evictedError(): JsonRpcErrorObject {
  return wireError('OWNER_LOST', 'No worker served the request while the log held it', { mayHaveRun: true });
}
