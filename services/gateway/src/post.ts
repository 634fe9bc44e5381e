/**
 * POST: append to `inbound`, wait for the ack, then answer on the stream of the request. The cursor is placed before
 * the append, so that no answer can be missed. SPEC: GW-POST, GW-INIT, AUTH-LIMIT-SESSIONS.
 */
import { startFollowing, startNumbering } from '@throughline/history';
import {
  anchorChecksum,
  BATCH_VERSION,
  canBatch,
  canPrime,
  formatBatchIds,
  formatEventId,
  HTTP_HEADER,
  INBOUND_TYPE,
  isLegacyVersion,
  makeRecord,
  makeSessionKey,
  requestStream,
  SESSION_KEY_BYTES,
  signSessionId,
  streamTag,
} from '@throughline/protocol';
import type { JsonRpcId, JsonRpcRequest, RecordInput } from '@throughline/protocol';
import { answerEmpty, refuse, RefusedError } from './answer-error.ts';
import { accepts, isJsonContent } from './admission.ts';
import { choosePartition } from './choose-partition.ts';
import { idOf, parseClientBody, requestIdsOf, requestsOf } from './client-body.ts';
import type { ClientBody } from './client-body.ts';
import { appendForClient, refuseBroken, tailOf } from './context.ts';
import type { GatewayContext, SessionRef } from './context.ts';
import type { GatewayRequest, ResponseSink } from './exchange.ts';
import { inPlace } from './in-place.ts';
import type { Outcome, Place } from './in-place.ts';
import type { Speaker } from './principal-limits.ts';
import { refuseEraOfHeader } from './refuse-era.ts';
import { checkSession, requireLiving, versionOf } from './session-check.ts';
import { formatPrimer } from './sse.ts';
import { jitteredRetryMs, SseStream } from './stream.ts';
import { principalTag } from './principal-tag.ts';

export async function handlePost(
  context: GatewayContext,
  request: GatewayRequest,
  speaker: Speaker,
  sink: ResponseSink,
): Promise<Outcome> {
  const accept = request.header('accept');
  if (!accepts(accept, 'application/json') || !accepts(accept, 'text/event-stream'))
    refuse('NOT_ACCEPTABLE', 'The Accept header must list application/json and text/event-stream');
  if (!isJsonContent(request.header('content-type')))
    refuse('UNSUPPORTED_MEDIA_TYPE', 'The Content-Type must be application/json');
  const body = parseClientBody(request.body);
  try {
    const initialize = requestsOf(body).find((message) => message.method === 'initialize');
    const checked =
      initialize === undefined
        ? await existingSession(context, request, speaker, body)
        : await newSession(context, request, speaker, body, initialize);
    return await append(context, { request, body, sink, ...checked });
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    throw new RefusedError({ ...idOf(body), ...error.refusal });
  }
}

interface SessionAndVersion {
  readonly session: SessionRef;
  readonly version: string;
}

async function existingSession(
  context: GatewayContext,
  request: GatewayRequest,
  speaker: Speaker,
  body: ClientBody,
): Promise<SessionAndVersion> {
  // Before the session, which a client of a later revision has none of.
  refuseEraOfHeader(request);
  const session = requireLiving(await checkSession(context, request, speaker));
  const version = versionOf(context, request, session);
  if (body.isBatch && !canBatch(version))
    refuse('INVALID_REQUEST', `MCP ${version} has no batches: send one message a POST`);
  return { session, version };
}

async function newSession(
  context: GatewayContext,
  request: GatewayRequest,
  speaker: Speaker,
  body: ClientBody,
  initialize: JsonRpcRequest,
): Promise<SessionAndVersion> {
  if (body.isBatch) refuse('INVALID_REQUEST', 'initialize must not be part of a batch', { id: initialize.id });
  if ((request.header(HTTP_HEADER.sessionId.toLowerCase()) ?? '') !== '')
    refuse('INVALID_REQUEST', 'initialize starts a session and must not name one');
  const version = initialize.params?.['protocolVersion'];
  if (typeof version !== 'string')
    refuse('INVALID_REQUEST', 'initialize: field params.protocolVersion must be a string');
  const { epoch } = context.current();
  const partition = await choosePartition(context, epoch, request.signal);
  if (partition === undefined) return refuse('NO_OWNER', 'No worker takes new sessions at the moment; try again');
  const tail = await tailOf(context, partition, request.signal);
  const { principal, share, untilMs, revoked } = speaker;
  context.limits.begin(share);
  const id = {
    epoch,
    partition,
    from: tail.position(),
    createdMs: context.clock.wallMs(),
    key: makeSessionKey(context.random.bytes(SESSION_KEY_BYTES)),
  };
  const [secret] = context.secrets();
  if (secret === undefined) throw new TypeError('no secret to sign session ids with');
  const text = signSessionId(id, { principal, server: request.server }, secret);
  // Priming follows what the client asked for: it asks for a revision that it understands.
  return {
    session: { text, id, principal, server: request.server, share, untilMs, revoked },
    version: isLegacyVersion(version) ? version : BATCH_VERSION,
  };
}

interface Incoming extends SessionAndVersion {
  readonly request: GatewayRequest;
  readonly body: ClientBody;
  readonly sink: ResponseSink;
}

/** The stream that answers, its requests in the log. */
async function append(context: GatewayContext, incoming: Incoming): Promise<Outcome> {
  const { session, version, body, sink } = incoming;
  const to = { topic: 'inbound', partition: session.id.partition } as const;
  const requests = requestIdsOf(body);
  if (requests.length === 0) {
    await appendForClient(context, to, inboundRecords(context, incoming, null));
    return answerEmpty(sink, 202);
  }
  // A client that could not come back must not lose its answer to a gateway that is about to stop.
  if (context.isDraining() && !canPrime(version)) refuse('DRAINING', 'This gateway is stopping; try again');
  return inPlace(context, session, null, (place) => ask(context, incoming, requests, place));
}

/** @param requests their places in the body, and their ids. */
async function ask(
  context: GatewayContext,
  incoming: Incoming,
  requests: ReturnType<typeof requestIdsOf>,
  place: Place,
): Promise<SseStream> {
  const { request, session, version, body, sink } = incoming;
  const to = { topic: 'inbound', partition: session.id.partition } as const;
  const isPrimed = canPrime(version);
  const tail = await tailOf(context, to.partition, request.signal);
  // A session that was made while the epoch changed would be over before it begins.
  if (context.current().epoch !== session.id.epoch) return refuseBroken();
  const after = tail.position();
  const anchor = tail.last();
  if (anchor === null) return refuse('NO_OWNER', 'No worker has served this partition yet; try again');
  const cursor = tail.cursor(session.id.key, after);
  const [first] = await appendForClient(context, to, inboundRecords(context, incoming, after));
  if (first === undefined) throw new TypeError('an append returned no offset');
  const stream = requestStream(first);
  place.isOf(stream);
  const numbering = startNumbering(session.text, stream);
  const { id } = idOf(body);
  const primer = formatEventId({
    epoch: session.id.epoch,
    partition: to.partition,
    offset: anchor.offset,
    stream,
    ...(id === undefined ? {} : { requestId: id }),
    seq: numbering.seq,
    tag: streamTag(session.text, stream),
    crc: anchorChecksum(anchor),
    chain: numbering.chain,
  });
  return new SseStream(context, {
    session,
    version,
    tail,
    cursor,
    following: startFollowing(stream, null),
    numbering,
    pending: new Map(requests.map(([place, requestId]) => [first + place, requestId])),
    sink,
    signal: request.signal,
    leave: place.leave,
    prelude: isPrimed ? [formatPrimer(primer, jitteredRetryMs(context))] : [],
    isResumable: isPrimed,
  });
}

/** W3C Trace Context. What else a client writes there is not carried on. */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]{0,64})?$/;

function traceparentOf(request: GatewayRequest): string | null {
  const text = request.header('traceparent');
  return text !== undefined && TRACEPARENT.test(text) ? text : null;
}

function inboundRecords(
  context: GatewayContext,
  { request, session, version, body }: Incoming,
  after: number | null,
): RecordInput[] {
  const principal = principalTag(context.secrets(), session.principal);
  const { texts, isBatch } = body;
  const batchIds = isBatch ? formatBatchIds(idsByPlace(body)) : null;
  return texts.map((text, place) =>
    makeRecord(INBOUND_TYPE.message, session.id.key, text, {
      server: session.server,
      principal,
      protocolVersion: version,
      batch: isBatch ? `${place}/${texts.length}` : null,
      batchIds,
      after: after === null ? null : String(after),
      traceparent: traceparentOf(request),
    }),
  );
}

/** Whoever finds only a part of a batch in the log can tell the rest by them. */
function idsByPlace(body: ClientBody): readonly (JsonRpcId | null)[] {
  const ids = new Map(requestIdsOf(body));
  return body.texts.map((_, place) => ids.get(place) ?? null);
}
