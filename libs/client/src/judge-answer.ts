/** What the head of an answer to a resume says, before any event is read. Pure. SPEC: CLIENT-ANSWER. */
import type { StreamCheckpoint } from './stream-checkpoint.ts';
import { reject } from './verdict.ts';
import type { Fact, Rejected } from './verdict.ts';

export interface AnswerHead {
  readonly status: number;
  readonly sessionId: string | null;
  readonly epoch: string | null;
  readonly contentType: string | null;
  /** It asks for other credentials: {@link isUnauthorized}. */
  readonly isUnauthorized: boolean;
}

export type AnswerVerdict =
  | { readonly do: 'read'; readonly proved: readonly Fact[] }
  /** Nothing follows on this stream. */
  | { readonly do: 'finished' }
  /** Nobody has decided anything about the session: a proxy, an overloaded or a starting server, or one that wants a login first. */
  | { readonly do: 'retry' }
  | Rejected;

export function judgeAnswer(checkpoint: StreamCheckpoint, head: AnswerHead): AnswerVerdict {
  const { status } = head;
  if (status === 204 || status === 405) return { do: 'finished' };
  if (isTemporary(status) || head.isUnauthorized) return { do: 'retry' };
  if (status < 200 || status > 299) return reject('session-invalid', `the server answered ${status}`);
  const changed = judgeNames(checkpoint, head);
  if (changed !== null) return changed;
  // A page of a proxy, for instance: not an answer of the server.
  if (mediaType(head.contentType) !== 'text/event-stream') return { do: 'retry' };
  const proved: Fact[] = [];
  if (head.sessionId !== null && head.sessionId === checkpoint.sessionId) proved.push('session');
  if (head.epoch !== null && head.epoch === checkpoint.epoch) proved.push('epoch');
  return { do: 'read', proved };
}

/** Session and epoch that an answer names must be those of the checkpoint. */
export function judgeNames(
  checkpoint: Pick<StreamCheckpoint, 'sessionId' | 'epoch'>,
  { sessionId, epoch }: Pick<AnswerHead, 'sessionId' | 'epoch'>,
): Rejected | null {
  if (sessionId !== null && checkpoint.sessionId !== null && sessionId !== checkpoint.sessionId)
    return reject('session-changed', 'the answer names another session');
  if (epoch !== null && checkpoint.epoch !== null && epoch !== checkpoint.epoch)
    return reject('epoch-mismatch', `the epoch was ${checkpoint.epoch} and is ${epoch}`);
  return null;
}

/** Whether the same request may be answered otherwise later: it says nothing about session or cursor. */
export function isTemporary(status: number): boolean {
  return status === 408 || status === 409 || status === 425 || status === 429 || status >= 500;
}

/** Whoever is not let in is told nothing about the session: with other credentials it may go on. */
export function isUnauthorized({ status, headers }: Pick<Response, 'status' | 'headers'>): boolean {
  return status === 401 || (status === 403 && headers.has('www-authenticate'));
}

export function mediaType(contentType: string | null): string {
  return (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
}
