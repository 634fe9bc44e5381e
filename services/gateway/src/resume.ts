/**
 * A resume is one read that begins at the anchor; what cannot be proved continuous is refused, and ends at most the
 * client's own session. SPEC: GW-GET, RES-*.
 */
import { decideAnchor, decideOpening, follow, startFollowing } from '@throughline/history';
import type { Following } from '@throughline/history';
import { deadline, hasLogCode } from '@throughline/log';
import { canPrime, formatTarget, HTTP_HEADER } from '@throughline/protocol';
import type { EventId, LogRecord, Offset, ResumptionReason } from '@throughline/protocol';
import { endsStream } from '@throughline/tail';
import type { CursorResult, PartitionTail, SessionCursor } from '@throughline/tail';
import { answerEmpty, refuse } from './answer-error.ts';
import { attach, makeAttachmentName } from './attach.ts';
import { tailOf } from './context.ts';
import type { GatewayContext } from './context.ts';
import { CLIENT_GONE } from './exchange.ts';
import type { ResponseSink } from './exchange.ts';
import { inPlace } from './in-place.ts';
import type { Outcome } from './in-place.ts';
import { pendingRequests } from './pending-requests.ts';
import { countResume, refuseResume } from './refuse-resume.ts';
import type { Resume } from './refuse-resume.ts';
import { formatComment, formatPrimer } from './sse.ts';
import { jitteredRetryMs, SseStream } from './stream.ts';

export async function resume(context: GatewayContext, options: Resume): Promise<Outcome> {
  const { checked, sink, lastEventId } = options;
  const { session } = checked;
  const opening = decideOpening({
    lastEventId,
    sessionId: session.text,
    session: session.id,
    currentEpoch: context.current().epoch,
    sessionEnded: checked.state === 'ended',
  });
  switch (opening.do) {
    case 'finished':
      return answerFinished(context, sink);
    case 'refuse':
      return refuseResume(context, options, opening.reason, opening.cursor, null);
    case 'read':
      break;
  }
  return inPlace(context, session, opening.cursor.stream, ({ leave }) =>
    resumeAt(context, options, opening.cursor, leave),
  );
}

async function resumeAt(
  context: GatewayContext,
  options: Resume,
  cursor: EventId,
  leave: () => void,
): Promise<Outcome> {
  const { checked, version, sink, lastEventId, signal } = options;
  const { session } = checked;
  const { partition, key } = session.id;
  const tail = await tailOf(context, partition, signal);
  await context.takeovers.admit(`${key} ${formatTarget(cursor.stream)}`, signal);
  // A connection that is gone must not take the stream from one that lives.
  if (signal.aborted) return CLIENT_GONE;
  const reader = tail.cursor(key, cursor.offset);
  const attachment = makeAttachmentName(context);
  // Reading does not wait for the attachment; whoever needs its outcome awaits it below.
  const attaching = attach(context, session, cursor.stream, attachment);
  attaching.catch(() => undefined);
  const found = await findAnchor(context, { cursor, tail, reader, attaching, signal });
  switch (found.kind) {
    case 'refuse':
      return refuseResume(context, options, found.reason, cursor, found.held);
    case 'gone':
      return CLIENT_GONE;
    case 'anchor':
      break;
  }
  reader.skipTo(cursor.offset + 1);
  const following = startFollowing(cursor.stream, attachment);
  const first = await readFirst(context, { tail, key, following, anchor: found.record, reader, signal });
  if (first === 'finished') return answerFinished(context, sink);
  const pending = await pendingRequests(context, session, cursor, signal);
  if (signal.aborted) return CLIENT_GONE;
  // Without its attachment this connection would not see that a newer one has the stream.
  const lost = new AbortController();
  attaching.catch(() => {
    lost.abort('the attachment failed');
  });
  countResume(context, 'resumed');
  return new SseStream(context, {
    session,
    version,
    tail,
    cursor: reader,
    following,
    numbering: { seq: cursor.seq === 'end' ? 0 : cursor.seq, chain: cursor.chain },
    pending,
    findPending: (asked) => pendingRequests(context, session, cursor, asked),
    sink,
    signal,
    lost: lost.signal,
    leave,
    // The client's own cursor first, so that it is not lost if nothing else comes.
    prelude: [
      formatComment('replay'),
      ...(canPrime(version) ? [formatPrimer(lastEventId, jitteredRetryMs(context))] : []),
    ],
    headers: { [HTTP_HEADER.replayFrom]: `${partition}.${cursor.offset}` },
    isResumable: true,
    ...(first === null ? {} : { first }),
  });
}

/** An empty 200 would make some clients come back for ever. */
function answerFinished(context: GatewayContext, sink: ResponseSink): number {
  countResume(context, 'finished');
  return answerEmpty(sink, 204);
}

type FoundAnchor =
  | { readonly kind: 'anchor'; readonly record: LogRecord }
  | {
      readonly kind: 'refuse';
      readonly reason: ResumptionReason;
      readonly held: { readonly start: Offset; readonly end: Offset } | null;
    }
  | { readonly kind: 'gone' };

interface AnchorSearch {
  readonly cursor: EventId;
  readonly tail: PartitionTail;
  readonly reader: SessionCursor;
  readonly attaching: Promise<Offset>;
  readonly signal: AbortSignal;
}

/** Refusals: `LOG_UNAVAILABLE`, `APPEND_UNKNOWN`. */
async function findAnchor(
  context: GatewayContext,
  { cursor, tail, reader, attaching, signal }: AnchorSearch,
): Promise<FoundAnchor> {
  const limit = deadline(context.clock, context.config.appendTimeoutMs, signal);
  let attachedAt: Offset | null = null;
  try {
    for (;;) {
      const read = await reader.readAnchor(limit.signal);
      if (read.kind === 'stopped') {
        if (signal.aborted) return { kind: 'gone' };
        return refuse('LOG_UNAVAILABLE', 'The log does not answer at the moment');
      }
      const finding =
        read.kind === 'record'
          ? ({ found: 'record', record: read.record } as const)
          : read.kind === 'gap'
            ? ({ found: 'evicted' } as const)
            : ({ found: 'nothing-yet', attachedAt } as const);
      const decision = decideAnchor(cursor, finding);
      if (decision.do === 'resume' && read.kind === 'record') return { kind: 'anchor', record: read.record };
      if (decision.do === 'refuse') {
        const held = read.kind === 'gap' ? { start: read.start, end: read.end } : null;
        // What stands there may have come after this attachment: then the cursor was beyond the end when it came.
        if (decision.reason === 'diverged' && cursor.offset >= (await attaching))
          return { kind: 'refuse', reason: 'beyond-end', held };
        return { kind: 'refuse', reason: decision.reason, held };
      }
      // Either the record comes (another gateway was faster), or the acknowledged attachment proves that it never existed here.
      if (attachedAt === null) attachedAt = await attaching;
      else if (!(await tail.reached(cursor.offset + 1, limit.signal)) && !limit.signal.aborted)
        return refuse('LOG_UNAVAILABLE', 'The log does not answer at the moment');
    }
  } catch (error) {
    if (hasLogCode(error, 'ABORTED')) return { kind: 'gone' };
    throw error;
  } finally {
    limit.dispose();
  }
}

interface FirstRead {
  readonly tail: PartitionTail;
  readonly key: string;
  readonly following: Following;
  readonly anchor: LogRecord;
  readonly reader: SessionCursor;
  readonly signal: AbortSignal;
}

/** For the look whether anything is left on the stream; after it the answer begins, whatever may come. */
const LOOK_AHEAD_MS = 5000;

/** What follows the anchor, as far as it was read; `finished` if nothing of the stream can follow. */
async function readFirst(
  context: GatewayContext,
  { tail, key, following, anchor, reader, signal }: FirstRead,
): Promise<CursorResult | 'finished' | null> {
  if (endsStream(tail, key, following, anchor)) return 'finished';
  const limit = deadline(context.clock, LOOK_AHEAD_MS, signal);
  try {
    for (;;) {
      const read = await reader.next(limit.signal, 0);
      if (read.kind === 'gap') return read;
      if (read.kind !== 'events') return null;
      let state = following;
      for (const { event: next } of read.events) {
        const [after, step] = follow(state, next);
        state = after;
        if (step.do === 'finish') return 'finished';
        if (step.do !== 'skip' && step.do !== 'live') return read;
      }
      // Only what this connection passes over, so it need not be seen again; its own attachment is the border, which must.
      if (state !== following) return read;
    }
  } finally {
    limit.dispose();
  }
}
