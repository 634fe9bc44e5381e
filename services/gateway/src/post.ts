/**
 * POST: append to `inbound`, wait for the ack, then answer on the stream of the request. The cursor is placed before
 * the append, so that no answer can be missed. SPEC: GW-POST, GW-INIT.
 */
import { startFollowing, startNumbering } from '@throughline/history';
import {
  anchorChecksum,
  canBatch,
  canPrime,
  encodeText,
  formatEventId,
  INBOUND_TYPE,
  LEGACY_VERSIONS,
  makeRecord,
  makeSessionKey,
  requestStream,
  SESSION_KEY_BYTES,
  signSessionId,
  streamTag,
} from '@throughline/protocol';
import type { JsonRpcRequest, RecordInput } from '@throughline/protocol';
import { answerEmpty, refuse } from './answer-error.ts';
import { accepts, isJsonContent } from './admission.ts';
import { parseClientBody, requestIdsOf, requestsOf } from './client-body.ts';
import type { ClientBody } from './client-body.ts';
import { appendForClient, tailOf } from './context.ts';
import type { GatewayContext, SessionRef } from './context.ts';
import type { GatewayRequest, ResponseSink } from './exchange.ts';
import { checkSession, requireLiving, versionOf } from './session-check.ts';
import { formatPrimer } from './sse.ts';
import { SseStream } from './stream.ts';
import { principalTag } from './principal-tag.ts';

export async function handlePost(
  context: GatewayContext,
  request: GatewayRequest,
  principal: string,
  sink: ResponseSink,
): Promise<number> {
  if (
    !accepts(request.header('accept'), 'application/json') ||
    !accepts(request.header('accept'), 'text/event-stream')
  ) {
    refuse('NOT_ACCEPTABLE', 'The Accept header must list application/json and text/event-stream');
  }
  if (!isJsonContent(request.header('content-type')))
    refuse('UNSUPPORTED_MEDIA_TYPE', 'The Content-Type must be application/json');
  const body = parseClientBody(request.body);
  const initialize = requestsOf(body).find((message) => message.method === 'initialize');
  if (initialize !== undefined) return initializeSession(context, request, principal, body, initialize, sink);
  const session = requireLiving(checkSession(context, request, principal));
  const version = versionOf(context, request, session);
  if (body.isBatch && !canBatch(version))
    refuse('INVALID_REQUEST', `MCP ${version} has no batches: send one message a POST`);
  return post(context, { request, session, version, body, sink });
}

interface Post {
  readonly request: GatewayRequest;
  readonly session: SessionRef;
  readonly version: string;
  readonly body: ClientBody;
  readonly sink: ResponseSink;
}

async function post(context: GatewayContext, { request, session, version, body, sink }: Post): Promise<number> {
  const { partition, key } = session.id;
  const ids = requestIdsOf(body);
  if (ids.length === 0) {
    await appendForClient(
      context,
      { topic: 'inbound', partition },
      inboundRecords(context, session, version, body, request, null),
    );
    return answerEmpty(sink, 202);
  }
  const id = ids.length === 1 ? ids[0] : undefined;
  const named = id === undefined ? {} : { id };
  // A client that could not come back must not lose its answer to a gateway that is about to stop.
  if (context.isDraining() && !canPrime(version)) refuse('DRAINING', 'This gateway is stopping; try again', named);
  if (context.connections.isFull()) refuse('CAPACITY', 'This gateway holds as many connections as it may', named);
  const tail = await tailOf(context, partition, request.signal);
  const after = tail.position();
  const anchor = tail.last();
  if (anchor === null) refuse('NO_OWNER', 'No worker has served this partition yet; try again', named);
  const cursor = tail.cursor(key, after);
  const offsets = await appendForClient(
    context,
    { topic: 'inbound', partition },
    inboundRecords(context, session, version, body, request, after),
  );
  const stream = requestStream(offsets[0] ?? 0);
  const numbering = startNumbering(session.text, stream);
  const primer = formatEventId({
    epoch: session.id.epoch,
    partition,
    offset: anchor.offset,
    stream,
    ...named2(id),
    seq: 0,
    tag: streamTag(session.text, stream),
    crc: anchorChecksum(anchor),
    chain: numbering.chain,
  });
  const primed = canPrime(version);
  await new SseStream(context, {
    session,
    version,
    tail,
    cursor,
    following: startFollowing(stream, null),
    numbering,
    pending: ids,
    sink,
    signal: request.signal,
    prelude: primed ? [formatPrimer(primer, context.config.retryMs * (0.75 + context.random.unit() / 2))] : [],
    primed,
  }).run();
  return 200;
}

function named2(id: string | number | undefined): { requestId?: string | number } {
  return id === undefined ? {} : { requestId: id };
}

function inboundRecords(
  context: GatewayContext,
  session: SessionRef,
  version: string,
  body: ClientBody,
  request: GatewayRequest,
  after: number | null,
): RecordInput[] {
  const count = body.messages.length;
  const principal = principalTag(context.config.secrets, session.principal);
  return body.messages.map((classified, index) =>
    makeRecord(
      INBOUND_TYPE.message,
      session.id.key,
      body.isBatch ? JSON.stringify(classified.message) : compactJson(request.body, classified.message),
      {
        server: session.server,
        principal,
        protocolVersion: version,
        batch: body.isBatch ? `${index}/${count}` : null,
        after: after === null ? null : String(after),
        traceparent: request.header('traceparent') ?? null,
      },
    ),
  );
}

/** The body as it came, if it is one line already: nothing is lost by parsing numbers and writing them again. */
function compactJson(body: Uint8Array, message: unknown): Uint8Array {
  return body.includes(0x0a) || body.includes(0x0d) ? encodeText(JSON.stringify(message)) : body;
}

async function initializeSession(
  context: GatewayContext,
  request: GatewayRequest,
  principal: string,
  body: ClientBody,
  initialize: JsonRpcRequest,
  sink: ResponseSink,
): Promise<number> {
  const named = { id: initialize.id };
  if (body.isBatch) refuse('INVALID_REQUEST', 'initialize must not be part of a batch', named);
  if ((request.header('mcp-session-id') ?? '') !== '')
    refuse('INVALID_REQUEST', 'initialize starts a session and must not name one', named);
  const version = initialize.params?.['protocolVersion'];
  if (typeof version !== 'string')
    refuse('INVALID_REQUEST', 'initialize: field params.protocolVersion must be a string', named);
  const { epoch } = context.current();
  const partitions = context.meta.livePartitions(epoch, context.config.deadAfterMs);
  const partition = partitions[Math.floor(context.random.unit() * partitions.length)];
  if (partition === undefined)
    return refuse('NO_OWNER', 'No worker takes new sessions at the moment; try again', named);
  const tail = await tailOf(context, partition, request.signal);
  const id = {
    epoch,
    partition,
    from: tail.position(),
    createdMs: context.clock.wallMs(),
    key: makeSessionKey(context.random.bytes(SESSION_KEY_BYTES)),
  };
  const [secret] = context.config.secrets;
  if (secret === undefined) throw new TypeError('no secret to sign session ids with');
  const text = signSessionId(id, { principal, server: request.server }, secret);
  const session = { text, id, principal, server: request.server };
  // Priming follows what the client asked for: it asks for a revision that it understands.
  const assumed = (LEGACY_VERSIONS as readonly string[]).includes(version) ? version : (LEGACY_VERSIONS[0] ?? version);
  return post(context, { request, session, version: assumed, body, sink });
}
