/** Routes a request: who may speak, which session, which of the answers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { classifyText, isLegacyVersion } from '@throughline/protocol';
import type { JsonRpcMessage, JsonRpcRequest, LegacyVersion } from '@throughline/protocol';
import { FaultySession } from './faulty-session.ts';
import { misbehaviourOf } from './misbehaviours.ts';
import { answerStatus } from './plain-answer.ts';
import { answerAsImpostor } from './resume-lies.ts';
import { say } from './say.ts';
import { beginStream, resumeHonestly } from './sse-answer.ts';
import { runTool, TOOLS } from './tools.ts';
import { noteShown } from './world.ts';
import type { LoggedRequest, World } from './world.ts';

const NEWEST: LegacyVersion = '2025-11-25';
/** What is remembered of a client that comes for ever; the rest is counted by nobody. */
const MAX_LOGGED = 10_000;

export async function answerRequest(
  world: World,
  origin: LoggedRequest['origin'],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const header = (name: string): string | undefined => request.headers[name]?.toString();
  const body = request.method === 'POST' ? classifyText(await text(request)) : null;
  const logged: LoggedRequest = {
    atMs: world.now(),
    method: request.method ?? '',
    path: request.url ?? '',
    origin,
    sessionId: header('mcp-session-id'),
    lastEventId: header('last-event-id'),
    rpcMethod: body !== null && 'message' in body && 'method' in body.message ? body.message.method : undefined,
    status: 0,
    isFault: false,
  };
  if (world.requests.length < MAX_LOGGED) world.requests.push(logged);
  const { writeHead } = response;
  response.writeHead = (status: number, ...rest: never[]) => {
    logged.status = status;
    return writeHead.call(response, status, ...rest);
  };
  const shown = world.shown;
  if (origin === 'impostor') answerOtherOrigin(world, logged, response);
  else if (world.isTokenExpired) answerStatus(response, 401, 'the token has expired');
  else if (body === null) answerWithoutBody(world, logged, response);
  else if ('fault' in body) answerStatus(response, 400, body.fault);
  else answerPost(world, logged, body.message, response);
  logged.isFault = world.shown > shown;
}

function answerPost(world: World, logged: LoggedRequest, message: JsonRpcMessage, response: ServerResponse): void {
  if ('method' in message && 'id' in message && message.method === 'initialize') {
    initialize(world, message, response);
    return;
  }
  const session = findSession(world, logged, response);
  if (session === null) return;
  if (!('method' in message)) session.takeAnswer(message);
  if (!('method' in message) || !('id' in message)) {
    response.writeHead(202).end();
    return;
  }
  if (message.method === 'tools/call') {
    answerCall(world, session, message, response);
    return;
  }
  const stream = session.openStream('request', message.id);
  beginStream(world, session, stream, response);
  say(world, stream, answerOf(message));
  stream.finish();
}

function answerCall(world: World, session: FaultySession, request: JsonRpcRequest, response: ServerResponse): void {
  const first = session.earlierCall(request.id);
  const stream = session.openStream('request', request.id);
  // As Throughline does: a repeated request gets the outcome of the first on a stream of its own.
  if (world.dialect === 'throughline' && first !== null) {
    beginStream(world, session, stream, response);
    void first.whenFinished().then(() => {
      for (const { data } of first.events) say(world, stream, JSON.parse(data) as JsonRpcMessage);
      stream.finish();
    });
    return;
  }
  const lie = misbehaviourOf(world.fault);
  const isLie = lie?.place === 'post' && request.params?.['name'] === 'count' && world.shown < lie.times;
  if (isLie) {
    noteShown(world);
    lie.post(world, session, response);
    if (!lie.doesRun) return;
  } else {
    beginStream(world, session, stream, response);
  }
  session.noteCall(request.id, stream);
  void runTool({ world, session, stream, request }).finally(() => stream.finish());
}

function initialize(world: World, request: JsonRpcRequest, response: ServerResponse): void {
  const asked = request.params?.['protocolVersion'];
  const version = typeof asked === 'string' && isLegacyVersion(asked) ? asked : NEWEST;
  const session = new FaultySession(world.numbers, world.numbers.makeSessionId(), version);
  world.sessions.set(session.id, session);
  const stream = session.openStream('request', request.id);
  beginStream(world, session, stream, response);
  const result = {
    protocolVersion: version,
    capabilities: { tools: {}, logging: {} },
    serverInfo: { name: `faulty-server-${world.dialect}`, version: '1.0.0' },
  };
  say(world, stream, { jsonrpc: '2.0', id: request.id, result });
  stream.finish();
}

function answerOf({ id, method }: JsonRpcRequest): JsonRpcMessage {
  switch (method) {
    case 'ping':
    case 'logging/setLevel':
      return { jsonrpc: '2.0', id, result: {} };
    case 'tools/list':
      return { jsonrpc: '2.0', id, result: { tools: TOOLS } };
    default:
      return { jsonrpc: '2.0', id, error: { code: -32601, message: `there is no method ${method}` } };
  }
}

function answerWithoutBody(world: World, logged: LoggedRequest, response: ServerResponse): void {
  if (logged.method !== 'GET' && logged.method !== 'DELETE') {
    answerStatus(response, 405, 'GET, POST and DELETE are served', { Allow: 'GET, POST, DELETE' });
    return;
  }
  const session = findSession(world, logged, response);
  if (session === null) return;
  if (logged.method === 'DELETE') {
    world.sessions.delete(session.id);
    session.close();
    response.writeHead(world.dialect === 'throughline' ? 204 : 200).end();
    return;
  }
  if (logged.lastEventId === undefined) {
    listen(world, session, response);
    return;
  }
  const found = session.find(logged.lastEventId);
  if (found === null) {
    answerStatus(response, 400, 'Last-Event-ID is not an event id of this session');
    return;
  }
  const resume = { session, lastEventId: logged.lastEventId, response, ...found };
  const lie = misbehaviourOf(world.fault);
  if (lie?.place === 'resume' && world.hit?.stream === found.stream && world.shown < lie.times) {
    noteShown(world);
    lie.resume(world, resume);
    return;
  }
  resumeHonestly(world, resume);
}

function listen(world: World, session: FaultySession, response: ServerResponse): void {
  // As the official SDK's server does; Throughline gives the stream to the newest.
  if (world.dialect === 'opaque' && session.standalone().connection !== null) {
    answerStatus(response, 409, 'only one SSE stream is allowed per session');
    return;
  }
  beginStream(world, session, session.listen(), response);
}

function findSession(world: World, { sessionId }: LoggedRequest, response: ServerResponse): FaultySession | null {
  if (sessionId === undefined) {
    answerStatus(response, 400, 'Mcp-Session-Id is needed');
    return null;
  }
  const session = world.sessions.get(sessionId) ?? null;
  if (session === null) answerStatus(response, 404, 'the session is not known');
  return session;
}

/** It knows no session and answers whoever comes. */
function answerOtherOrigin(world: World, { lastEventId = '' }: LoggedRequest, response: ServerResponse): void {
  if (world.hit === null) {
    answerStatus(response, 404, 'nobody was sent here yet');
    return;
  }
  answerAsImpostor(world, world.hit, { ...world.hit, held: 0, lastEventId, response });
}
