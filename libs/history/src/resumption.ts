/**
 * The resumption decision. Never clamps, never starts at the beginning or the end instead: what cannot be proved
 * continuous is refused with a reason. Pure. SPEC: RES-*.
 */
import {
  anchorChecksum,
  equalBytes,
  parseEventId,
  RESUMPTION_REASONS,
  ERROR_TABLE,
  streamTag,
} from '@throughline/protocol';
import type { EventId, LogRecord, Offset, ResumptionReason, SessionId, StreamKind } from '@throughline/protocol';

export interface ResumeRequest {
  /** The value of `Last-Event-ID`. */
  readonly lastEventId: string;
  /** The session id as sent, already verified. */
  readonly sessionId: string;
  readonly session: SessionId;
  readonly currentEpoch: string;
  /** The session's end is known. */
  readonly sessionEnded: boolean;
}

export type Opening =
  | { readonly do: 'read'; readonly cursor: EventId }
  /** The stream was ended by the gateway itself: 204, with no look-up. */
  | { readonly do: 'finished' }
  | { readonly do: 'refuse'; readonly reason: ResumptionReason; readonly cursor: EventId | null };

/** The decision before anything is read. A refusal without `cursor` names no request that could be answered in-band. */
export function decideOpening(request: ResumeRequest): Opening {
  const isFormer = request.session.epoch !== request.currentEpoch;
  const cursor = parseEventId(request.lastEventId);
  const isOwn =
    cursor !== null &&
    cursor.partition === request.session.partition &&
    equalBytes(cursor.tag, streamTag(request.sessionId, cursor.stream));
  if (!isOwn) {
    // A session that is gone says so whatever the cursor is: told to correct its cursor, the client would never start anew.
    if (isFormer) return { do: 'refuse', reason: 'epoch-mismatch', cursor: null };
    if (request.sessionEnded) return { do: 'refuse', reason: 'session-ended', cursor: null };
    return { do: 'refuse', reason: cursor === null ? 'cursor-malformed' : 'cursor-foreign', cursor };
  }
  return decideOwnCursor(cursor, { ...request, isFormer });
}

/** The same for a cursor that is known to be the session's own. */
export function decideOwnCursor(
  cursor: EventId,
  session: { readonly isFormer: boolean; readonly currentEpoch: string; readonly sessionEnded: boolean },
): Opening {
  if (cursor.seq === 'end') return { do: 'finished' };
  if (session.isFormer || cursor.epoch !== session.currentEpoch)
    return { do: 'refuse', reason: 'epoch-mismatch', cursor };
  if (session.sessionEnded) return { do: 'refuse', reason: 'session-ended', cursor };
  return { do: 'read', cursor };
}

/** What the one read that begins at the anchor found. */
export type AnchorFinding =
  | { readonly found: 'record'; readonly record: LogRecord }
  /** The position lies below what is held. */
  | { readonly found: 'evicted' }
  /** Nothing there yet. `attachedAt`: offset of this GET's own acknowledged attachment, `null` while not acknowledged. */
  | { readonly found: 'nothing-yet'; readonly attachedAt: Offset | null };

export type AnchorDecision =
  { readonly do: 'resume' } | { readonly do: 'wait' } | { readonly do: 'refuse'; readonly reason: ResumptionReason };

export function decideAnchor(cursor: EventId, finding: AnchorFinding): AnchorDecision {
  switch (finding.found) {
    case 'record':
      if (finding.record.offset !== cursor.offset || anchorChecksum(finding.record) !== cursor.crc)
        return { do: 'refuse', reason: 'diverged' };
      return { do: 'resume' };
    case 'evicted':
      return { do: 'refuse', reason: 'gap' };
    case 'nothing-yet':
      if (finding.attachedAt === null) return { do: 'wait' };
      return cursor.offset >= finding.attachedAt ? { do: 'refuse', reason: 'beyond-end' } : { do: 'wait' };
  }
}

export interface RefusalAnswer {
  /** `in-band`: 200 SSE with a JSON-RPC error for the pending request, then the end. */
  readonly answer: 'in-band' | 400 | 404;
  /** Whether the refusal ends the session (and so fails all that is pending in it). */
  readonly endsSession: boolean;
}

/** How a refusal is told. A cursor that is merely wrong leaves the session alone; one that proves a break ends it. */
export function answerRefusal(reason: ResumptionReason, stream: StreamKind): RefusalAnswer {
  if (ERROR_TABLE[RESUMPTION_REASONS[reason]].http === 400) return { answer: 400, endsSession: false };
  return { answer: stream === 'request' ? 'in-band' : 404, endsSession: reason !== 'session-ended' };
}
