/** Heads of SSE answers, and the honest answers to those who come, and come back. */
import type { ServerResponse } from 'node:http';
import { HTTP_HEADER } from '@throughline/protocol';
import type { FaultySession } from './faulty-session.ts';
import type { ScriptedStream } from './scripted-stream.ts';
import { SseConnection } from './sse-connection.ts';
import { commentText, primerText } from './sse-text.ts';
import type { StreamEvent } from './sse-text.ts';
import type { World } from './world.ts';

export const EVENT_STREAM = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store, no-transform' } as const;

/** Writes the head of a stream. `headers` replace those that an honest server would send. */
export function openSse(
  world: World,
  session: FaultySession,
  response: ServerResponse,
  headers: Readonly<Record<string, string>> = {},
): SseConnection {
  response.writeHead(200, {
    ...EVENT_STREAM,
    [HTTP_HEADER.sessionId]: session.id,
    ...(world.hasEpoch ? { [HTTP_HEADER.replayEpoch]: world.numbers.epoch } : {}),
    ...headers,
  });
  return new SseConnection({ response, form: world.form, keepAliveMs: world.keepAliveMs });
}

/** Begins a stream for its first reader: with an id that it can come back to, where its dialect and version have that. */
export function beginStream(
  world: World,
  session: FaultySession,
  stream: ScriptedStream,
  response: ServerResponse,
): void {
  const connection = openSse(world, session, response);
  const isPrimed = session.canPrime() && (world.dialect !== 'opaque' || stream.label.kind === 'request');
  if (isPrimed) {
    const place = stream.markPlace();
    if (world.dialect === 'throughline' && stream.label.kind === 'standalone')
      connection.text(commentText(`live ${place}`));
    connection.text(primerText(place, world.retryMs));
  }
  deliver(world, stream, connection, stream.events);
  settle(stream, connection);
}

export interface Resume {
  readonly session: FaultySession;
  readonly stream: ScriptedStream;
  /** How many of the stream's events the client has. */
  readonly held: number;
  readonly lastEventId: string;
  readonly response: ServerResponse;
}

export function resumeHonestly(world: World, resume: Resume, headers: Readonly<Record<string, string>> = {}): void {
  const { session, stream, held, response } = resume;
  if (world.dialect === 'throughline' && stream.isFinished && held === stream.events.length) {
    response.writeHead(204).end();
    return;
  }
  const connection = openResumed(world, resume, headers);
  deliver(world, stream, connection, stream.events.slice(held));
  if (world.dialect === 'throughline' && !stream.isFinished) {
    const place = stream.markPlace();
    connection.text(commentText(`live ${place}`));
    if (session.canPrime()) connection.text(primerText(place, world.retryMs));
  }
  settle(stream, connection);
}

/** The head of an answer to a resume, and what stands before its events. */
export function openResumed(
  world: World,
  { session, lastEventId, response }: Resume,
  headers: Readonly<Record<string, string>> = {},
): SseConnection {
  const from = world.dialect === 'throughline' ? { [HTTP_HEADER.replayFrom]: placeOf(lastEventId) } : {};
  const connection = openSse(world, session, response, { ...from, ...headers });
  if (world.dialect === 'throughline') {
    connection.text(commentText('replay'));
    if (session.canPrime()) connection.text(primerText(lastEventId, world.retryMs));
  }
  return connection;
}

/** Writes events as they are, and notes that they were sent. */
export function deliver(
  world: World,
  { name }: ScriptedStream,
  connection: SseConnection,
  events: readonly StreamEvent[],
): void {
  for (const event of events) {
    noteSent(world, name, event);
    connection.event(event);
  }
}

export function noteSent(world: World, stream: string, { id, data }: StreamEvent): void {
  world.sent.push({ atMs: world.now(), stream, id, data });
}

/** What comes next goes to this connection; a stream that is over ends it. */
export function settle(stream: ScriptedStream, connection: SseConnection): void {
  if (stream.isFinished) connection.end();
  else stream.attach(connection);
}

/** `<partition>.<offset>` of a cursor. */
function placeOf(lastEventId: string): string {
  return lastEventId.split('.').slice(1, 3).join('.');
}
