/** How a refused resume is told: in-band on request streams, so that the pending call fails at once; by status otherwise. SPEC: GW-GET. */
import { answerRefusal as answerOf } from '@throughline/history';
import { MAX_EVENT_ID_LENGTH, resumptionError, streamTag } from '@throughline/protocol';
import type { EventId, Offset, ResumptionReason } from '@throughline/protocol';
import { answerError } from './answer-error.ts';
import { endSession } from './context.ts';
import type { GatewayContext } from './context.ts';
import { CLIENT_GONE } from './exchange.ts';
import type { ResponseSink } from './exchange.ts';
import { pendingRequests } from './pending-requests.ts';
import type { CheckedSession } from './session-check.ts';
import { sseHead } from './stream.ts';
import { terminalEvents } from './terminal-events.ts';

export interface Resume {
  readonly checked: CheckedSession;
  readonly version: string;
  readonly sink: ResponseSink;
  readonly lastEventId: string;
  /** Fires when the client's connection is gone. */
  readonly signal: AbortSignal;
}

/** Refusal: `LOG_UNAVAILABLE` if the session cannot be ended: nothing is told before that. */
export async function refuseResume(
  context: GatewayContext,
  { checked, lastEventId, sink, signal }: Resume,
  reason: ResumptionReason,
  cursor: EventId | null,
  held: { readonly start: Offset; readonly end: Offset } | null,
): Promise<number> {
  const { session } = checked;
  const { answer, endsSession } = answerOf(reason, cursor?.stream.kind ?? 'standalone');
  // Before the session ends: afterwards its worker may already have let go of everything.
  const pending =
    cursor === null || answer !== 'in-band' ? new Map() : await pendingRequests(context, session, cursor, signal);
  context.logger.info('resume refused', {
    reason,
    partition: session.id.partition,
    offset: cursor?.offset,
    session: session.id.key,
  });
  if (endsSession && checked.state === 'lives') await endSession(context, session, 'resumption-rejected');
  countResume(context, reason);
  if (signal.aborted) return CLIENT_GONE;
  const error = resumptionError({
    reason,
    requested: lastEventId.slice(0, MAX_EVENT_ID_LENGTH),
    ...(answer === 400 ? {} : { available: { epoch: context.current().epoch, ...held } }),
  });
  if (answer !== 'in-band' || cursor === null)
    return answerError(sink, answer === 'in-band' ? 404 : answer, error, null);
  sink.head(200, sseHead(context, session));
  sink.write(
    terminalEvents({ ...cursor, tag: streamTag(session.text, cursor.stream) }, [...(pending?.values() ?? [])], error),
  );
  sink.end();
  return 200;
}

export function countResume(context: GatewayContext, outcome: string): void {
  context.metrics.add('throughline_gateway_resumes_total', 1, { outcome });
}
