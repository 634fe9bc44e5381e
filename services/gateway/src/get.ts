/**
 * GET: a standalone stream, or a resume by `Last-Event-ID`. A resume is one read that begins at the anchor; what cannot
 * be proved continuous is refused, and ends at most the client's own session. SPEC: GW-GET, RES-*.
 */
import {
  answerRefusal as answerOf,
  beginsAtSessionStart,
  decideAnchor,
  decideOpening,
  foldStandalone,
  follow,
  NO_STANDALONE_HISTORY,
  startFollowing,
  startNumbering,
} from '@throughline/history';
import type { Following } from '@throughline/history';
import { deadline, hasLogCode } from '@throughline/log';
import {
  canPrime,
  classifyMessage,
  decodeText,
  EVENT_TYPE,
  formatTarget,
  HTTP_HEADER,
  makeRecord,
  MAX_EVENT_ID_LENGTH,
  readEventRecord,
  resumptionError,
  STANDALONE,
  standaloneStream,
  streamTag,
  toBase64Url,
} from '@throughline/protocol';
import type { EventId, JsonRpcId, LogRecord, Offset, ResumptionReason, StreamTarget } from '@throughline/protocol';
import type { CursorResult, PartitionTail, SessionCursor } from '@throughline/tail';
import { accepts } from './admission.ts';
import { answerEmpty, answerError, refuse } from './answer-error.ts';
import { appendForClient, endSession, tailOf } from './context.ts';
import type { GatewayContext, SessionRef } from './context.ts';
import type { GatewayRequest, ResponseSink } from './exchange.ts';
import { checkSession, requireLiving, versionOf } from './session-check.ts';
import type { CheckedSession } from './session-check.ts';
import { formatComment, formatPrimer } from './sse.ts';
import { sseHead, SseStream, terminalEvents } from './stream.ts';

export async function handleGet(
  context: GatewayContext,
  request: GatewayRequest,
  principal: string,
  sink: ResponseSink,
): Promise<number> {
  if (!accepts(request.header('accept'), 'text/event-stream'))
    refuse('NOT_ACCEPTABLE', 'The Accept header must list text/event-stream');
  if ((request.header('mcp-session-id') ?? '') === '') {
    refuse(
      'METHOD_NOT_ALLOWED',
      'GET needs an Mcp-Session-Id. The HTTP+SSE transport of MCP 2024-11-05 is not served here: use Streamable HTTP (POST initialize)',
      {
        headers: { Allow: 'POST' },
      },
    );
  }
  const checked = checkSession(context, request, principal);
  const lastEventId = request.header(HTTP_HEADER.lastEventId.toLowerCase());
  const version = versionOf(context, request, checked.session);
  if (lastEventId !== undefined && lastEventId !== '')
    return resume(context, { request, checked, version, sink, lastEventId });
  requireLiving(checked);
  return openStandalone(context, { request, session: checked.session, version, sink });
}

interface Standalone {
  readonly request: GatewayRequest;
  readonly session: SessionRef;
  readonly version: string;
  readonly sink: ResponseSink;
}

async function openStandalone(
  context: GatewayContext,
  { request, session, version, sink }: Standalone,
): Promise<number> {
  if (context.connections.isFull()) refuse('CAPACITY', 'This gateway holds as many connections as it may');
  const { partition, key, from } = session.id;
  const tail = await tailOf(context, partition, request.signal);
  await context.takeovers.admit(`${key} ${STANDALONE}`, request.signal);
  if (request.signal.aborted) return 499;
  const attachment = makeAttachmentName(context);
  const attachedAt = await attach(context, session, STANDALONE, attachment);
  const start = (await missedBeforeListening(context, tail, session, attachedAt, request.signal)) ? from : attachedAt;
  const stream = standaloneStream(attachedAt);
  await new SseStream(context, {
    session,
    version,
    tail,
    cursor: tail.cursor(key, start),
    following: startFollowing(stream, attachment),
    numbering: startNumbering(session.text, stream),
    pending: [],
    sink,
    signal: request.signal,
    prelude: [formatComment('open')],
    primed: false,
  }).run();
  return 200;
}

/** Whether the stream begins at the session's start: what the server said before the client listened is not lost. */
async function missedBeforeListening(
  context: GatewayContext,
  tail: PartitionTail,
  session: SessionRef,
  attachedAt: Offset,
  signal: AbortSignal,
): Promise<boolean> {
  const limit = deadline(context.clock, context.config.appendTimeoutMs, signal);
  try {
    if (!(await tail.reached(attachedAt + 1, limit.signal))) return false;
    const cursor = tail.cursor(session.id.key, session.id.from);
    let history = NO_STANDALONE_HISTORY;
    for (;;) {
      const result = await cursor.next(limit.signal, 0);
      if (result.kind !== 'events') return result.kind === 'idle' && beginsAtSessionStart(history);
      for (const { event } of result.events) {
        if (event.offset >= attachedAt) return beginsAtSessionStart(history);
        history = foldStandalone(history, event);
      }
    }
  } finally {
    limit.dispose();
  }
}

interface Resume {
  readonly request: GatewayRequest;
  readonly checked: CheckedSession;
  readonly version: string;
  readonly sink: ResponseSink;
  readonly lastEventId: string;
}

async function resume(context: GatewayContext, options: Resume): Promise<number> {
  const { request, checked, version, sink, lastEventId } = options;
  const { session } = checked;
  const opening = decideOpening({
    lastEventId,
    sessionId: session.text,
    session: session.id,
    currentEpoch: context.current().epoch,
    sessionEnded: checked.state === 'ended',
  });
  if (opening.do === 'finished') {
    countResume(context, 'finished');
    return answerEmpty(sink, 204);
  }
  if (opening.do === 'refuse') return refuseResume(context, options, opening.reason, opening.cursor, null);
  if (context.connections.isFull()) refuse('CAPACITY', 'This gateway holds as many connections as it may');
  const { cursor } = opening;
  const { partition, key } = session.id;
  const tail = await tailOf(context, partition, request.signal);
  await context.takeovers.admit(`${key} ${formatTarget(cursor.stream)}`, request.signal);
  if (request.signal.aborted) return 499;
  const reader = tail.cursor(key, cursor.offset);
  const attachment = makeAttachmentName(context);
  // Reading does not wait for the attachment; whoever needs its outcome awaits it below.
  const attaching = attach(context, session, cursor.stream, attachment);
  attaching.catch(() => undefined);
  const found = await findAnchor(context, { cursor, tail, reader, attaching, signal: request.signal });
  switch (found.kind) {
    case 'refuse':
      return refuseResume(context, options, found.reason, cursor, found.held);
    case 'gone':
      return 499;
    case 'anchor':
      break;
  }
  reader.skipTo(cursor.offset + 1);
  const following = startFollowing(cursor.stream, attachment);
  const first = await reader.next(request.signal, 0);
  if (isFinished(tail, key, following, found.record, first)) {
    countResume(context, 'finished');
    return answerEmpty(sink, 204);
  }
  // If the attachment fails the client still reads on; only a newer connection might not be told apart from this one, so the stream stops then.
  const lost = new AbortController();
  const onGone = (): void => {
    lost.abort();
  };
  attaching.catch(onGone);
  request.signal.addEventListener('abort', onGone, { once: true });
  if (request.signal.aborted) onGone();
  countResume(context, 'resumed');
  const pending = await pendingOf(context, session, cursor);
  await new SseStream(context, {
    session,
    version,
    tail,
    cursor: reader,
    following,
    numbering: { seq: cursor.seq === 'end' ? 0 : cursor.seq, chain: cursor.chain },
    pending,
    sink,
    signal: lost.signal,
    // The client's own cursor first, so that it is not lost if nothing else comes.
    prelude: [
      formatComment('replay'),
      ...(canPrime(version)
        ? [formatPrimer(lastEventId, context.config.retryMs * (0.75 + context.random.unit() / 2))]
        : []),
    ],
    headers: { [HTTP_HEADER.replayFrom]: `${partition}.${cursor.offset}` },
    primed: true,
    ...(first.kind === 'events' || first.kind === 'gap' ? { first } : {}),
  }).run();
  request.signal.removeEventListener('abort', onGone);
  return 200;
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

/** Whether nothing of the stream can follow the anchor: an empty 200 would make some clients come back for ever. */
function isFinished(
  tail: PartitionTail,
  key: string,
  following: Following,
  anchor: LogRecord,
  first: CursorResult,
): boolean {
  const event = readEventRecord(anchor);
  if (!('unreadable' in event) && event.key === key && tail.claims().judge(event) === 'accepted') {
    const [, step] = follow(following, event);
    if (step.do === 'deliver' && step.end) return true;
  }
  if (first.kind !== 'events') return false;
  let state = following;
  for (const { event: next } of first.events) {
    const [after, step] = follow(state, next);
    state = after;
    if (step.do === 'finish') return true;
    if (step.do !== 'skip' && step.do !== 'live') return false;
  }
  return false;
}

async function refuseResume(
  context: GatewayContext,
  { request, checked, lastEventId, sink }: Resume,
  reason: ResumptionReason,
  cursor: EventId | null,
  held: { readonly start: Offset; readonly end: Offset } | null,
): Promise<number> {
  const { session } = checked;
  const kind = cursor?.stream.kind ?? 'standalone';
  const { answer, endsSession } = answerOf(reason, kind);
  context.logger.info('resume refused', {
    reason,
    partition: session.id.partition,
    offset: cursor?.offset,
    session: session.id.key,
  });
  countResume(context, reason);
  if (endsSession && checked.state === 'lives') await endSession(context, session, 'resumption-rejected');
  const error = resumptionError({
    reason,
    requested: lastEventId.slice(0, MAX_EVENT_ID_LENGTH),
    ...(answer === 400 ? {} : { available: { epoch: context.current().epoch, ...held } }),
  });
  const pending = cursor === null ? [] : await pendingOf(context, session, cursor);
  if (answer !== 'in-band' || cursor === null)
    return answerError(sink, answer === 'in-band' ? 404 : answer, error, null);
  if (request.signal.aborted) return 499;
  sink.head(200, sseHead(context, session));
  sink.write(terminalEvents({ ...cursor, tag: streamTag(session.text, cursor.stream) }, pending, error));
  sink.end();
  return 200;
}

/** The JSON-RPC ids that wait on a request stream: in the cursor, or in the request's own record if that is still held. */
async function pendingOf(context: GatewayContext, session: SessionRef, cursor: EventId): Promise<readonly JsonRpcId[]> {
  if (cursor.stream.kind !== 'request') return [];
  if (cursor.requestId !== undefined) return [cursor.requestId];
  if (session.id.epoch !== context.current().epoch) return [];
  try {
    const { records } = await context.log.read(
      { topic: 'inbound', partition: session.id.partition },
      cursor.stream.at,
      { maxBytes: 64 * 1024 },
    );
    const ids: JsonRpcId[] = [];
    for (const record of records) {
      const batch = record.headers.find(([name]) => name === 'batch')?.[1];
      if (record.key === null || decodeText(record.key) !== session.id.key) break;
      if (ids.length > 0 && (batch === undefined || decodeText(batch).startsWith('0/'))) break;
      const classified = parseMessage(record);
      if (classified !== null && 'kind' in classified && classified.kind === 'request') ids.push(classified.message.id);
      if (batch === undefined) break;
    }
    return ids;
  } catch {
    return [];
  }
}

function parseMessage(record: LogRecord): ReturnType<typeof classifyMessage> | null {
  try {
    return record.value === null ? null : classifyMessage(JSON.parse(decodeText(record.value)));
  } catch {
    return null;
  }
}

function makeAttachmentName(context: GatewayContext): string {
  return toBase64Url(context.random.bytes(9));
}

async function attach(
  context: GatewayContext,
  session: SessionRef,
  stream: StreamTarget,
  attachment: string,
): Promise<Offset> {
  const record = makeRecord(EVENT_TYPE.attached, session.id.key, null, { stream: formatTarget(stream), attachment });
  const [offset] = await appendForClient(context, { topic: 'events', partition: session.id.partition }, [record]);
  if (offset === undefined) throw new TypeError('an append of one record returned no offset');
  return offset;
}

function countResume(context: GatewayContext, outcome: string): void {
  context.metrics.add('throughline_gateway_resumes_total', 1, { outcome });
}
