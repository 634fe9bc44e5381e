/** GET: a standalone stream, or a resume by `Last-Event-ID`. SPEC: GW-GET, GW-LISTEN. */
import { startFollowing, startNumbering } from '@throughline/history';
import { deadline } from '@throughline/log';
import { HTTP_HEADER, STANDALONE, standaloneStream } from '@throughline/protocol';
import type { JsonRpcId, Offset } from '@throughline/protocol';
import { accepts } from './admission.ts';
import { refuse } from './answer-error.ts';
import { attach, makeAttachmentName } from './attach.ts';
import { tailOf } from './context.ts';
import type { GatewayContext, SessionRef } from './context.ts';
import { CLIENT_GONE } from './exchange.ts';
import type { GatewayRequest, ResponseSink } from './exchange.ts';
import { inPlace } from './in-place.ts';
import type { Outcome } from './in-place.ts';
import type { Speaker } from './principal-limits.ts';
import { resume } from './resume.ts';
import { checkSession, requireLiving, versionOf } from './session-check.ts';
import { formatComment } from './sse.ts';
import { SseStream } from './stream.ts';

export async function handleGet(
  context: GatewayContext,
  request: GatewayRequest,
  speaker: Speaker,
  sink: ResponseSink,
): Promise<Outcome> {
  if (!accepts(request.header('accept'), 'text/event-stream'))
    refuse('NOT_ACCEPTABLE', 'The Accept header must list text/event-stream');
  const lastEventId = request.header(HTTP_HEADER.lastEventId.toLowerCase()) ?? '';
  if ((request.header(HTTP_HEADER.sessionId.toLowerCase()) ?? '') === '' && lastEventId === '') {
    refuse(
      'METHOD_NOT_ALLOWED',
      'GET needs an Mcp-Session-Id. The HTTP+SSE transport of MCP 2024-11-05 is not served here: use Streamable HTTP (POST initialize)',
      { headers: { Allow: 'POST' } },
    );
  }
  const checked = await checkSession(context, request, speaker);
  const version = versionOf(context, request, checked.session);
  if (lastEventId !== '') return resume(context, { checked, version, sink, lastEventId, signal: request.signal });
  const options = { session: requireLiving(checked), version, sink, signal: request.signal };
  return inPlace(context, options.session, STANDALONE, ({ leave }) => openStandalone(context, options, leave));
}

interface Standalone {
  readonly session: SessionRef;
  readonly version: string;
  readonly sink: ResponseSink;
  readonly signal: AbortSignal;
}

const NOTHING_PENDING: ReadonlyMap<Offset, JsonRpcId> = new Map();
/** For the look at what the session holds already; a head that comes later helps nobody. */
const LOOK_BACK_MS = 5000;

async function openStandalone(
  context: GatewayContext,
  { session, version, sink, signal }: Standalone,
  leave: () => void,
): Promise<Outcome> {
  const { partition, key, from } = session.id;
  const tail = await tailOf(context, partition, signal);
  await context.takeovers.admit(`${key} ${STANDALONE}`, signal);
  // A connection that is gone must not take the stream from one that lives.
  if (signal.aborted) return CLIENT_GONE;
  const attachment = makeAttachmentName(context);
  const attachedAt = await attach(context, session, STANDALONE, attachment);
  const limit = deadline(context.clock, Math.min(LOOK_BACK_MS, context.config.appendTimeoutMs), signal);
  const decision = await context.standaloneStart.decide(tail, session.id, attachedAt, limit.signal);
  limit.dispose();
  if (signal.aborted) return CLIENT_GONE;
  if (decision === 'not-read-in-time') {
    context.logger.warn('a standalone stream begins at its attachment: the session could not be read in time', {
      partition,
      session: key,
    });
  }
  const stream = standaloneStream(attachedAt);
  return new SseStream(context, {
    session,
    version,
    tail,
    cursor: tail.cursor(key, decision === 'at-session-start' ? from : attachedAt),
    following: startFollowing(stream, attachment),
    numbering: startNumbering(session.text, stream),
    pending: NOTHING_PENDING,
    sink,
    signal,
    leave,
    prelude: [formatComment('open')],
    isResumable: false,
  });
}
