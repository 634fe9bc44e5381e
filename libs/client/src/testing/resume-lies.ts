/** Misbehaviours in the answer to a resume. */
import { setTimeout as pause } from 'node:timers/promises';
import { HTTP_HEADER, makeEpoch } from '@throughline/protocol';
import type { FaultName } from './fault-table.ts';
import { FaultySession } from './faulty-session.ts';
import type { Misbehaviour, Scene } from './misbehaviour.ts';
import { answerHtmlPage, answerStatus } from './plain-answer.ts';
import { altered, foreignScript } from './script-words.ts';
import type { ScriptedStream } from './scripted-stream.ts';
import { deliver, EVENT_STREAM, openResumed, openSse, resumeHonestly, settle } from './sse-answer.ts';
import type { Resume } from './sse-answer.ts';
import type { StreamEvent } from './sse-text.ts';
import { READ_MS } from './timing.ts';
import type { World } from './world.ts';

type ResumeLie = Extract<Misbehaviour, { place: 'resume' }>;

/** How many messages those have to say who have no business on the stream. */
const FOREIGN_EVENTS = 6;

const once = (resume: ResumeLie['resume'], end: ResumeLie['say'] = close): ResumeLie => ({
  place: 'resume',
  times: 1,
  say: end,
  resume,
});
const always = (resume: ResumeLie['resume']): ResumeLie => ({ ...once(resume), times: Infinity });
/** The answer to the resume, with these events in the place of the missed ones. */
const replaying = (choose: (resume: Resume, world: World) => readonly StreamEvent[]): ResumeLie =>
  once((world, resume) => {
    const connection = openResumed(world, resume);
    deliver(world, resume.stream, connection, choose(resume, world));
    settle(resume.stream, connection);
  });

const missed = ({ stream, held }: Resume): StreamEvent[] => stream.events.slice(held);
/** The last event that the client has; nothing if it has none. */
const boundary = ({ stream, held }: Resume): StreamEvent[] => stream.events.slice(Math.max(0, held - 1), held);

export const RESUME_LIES = {
  'gap-continuous-ids': replaying((resume) => {
    const forgetful = resume.stream.numbering.withoutMemory(resume.held);
    return missed(resume)
      .slice(1)
      .map(({ data }) => ({ id: forgetful.next(data), data }));
  }),
  'gap-in-ids': replaying((resume) => missed(resume).slice(1)),
  'session-resurrected': once((world, resume) => {
    const { session, stream } = resume;
    answerWith(world, resume, session.openStream(stream.label.kind, stream.requestId));
  }),
  'another-session': once((world, resume) => {
    const { session, stream } = resume;
    const other = new FaultySession(world.numbers, world.numbers.makeSessionId(), session.version);
    answerWith(world, resume, other.openStream(stream.label.kind, stream.requestId));
  }),
  'another-stream': once((world, resume) => {
    const { session, stream } = resume;
    const kind = stream.label.kind === 'request' ? 'standalone' : 'request';
    answerWith(world, resume, session.openStream(kind, stream.requestId));
  }),
  'replay-from-zero': replaying(({ stream }) => stream.events),
  'epoch-changed': once((world, resume) =>
    resumeHonestly(world, resume, { [HTTP_HEADER.replayEpoch]: otherEpoch(world.numbers.epoch) }),
  ),
  'session-id-changed': once((world, resume) =>
    resumeHonestly(world, resume, { [HTTP_HEADER.sessionId]: world.numbers.makeSessionId() }),
  ),
  'altered-payload': replaying((resume) => {
    const [first, ...rest] = missed(resume);
    return first === undefined ? rest : [{ ...first, data: altered(first.data) }, ...rest];
  }),
  'altered-boundary': replaying((resume) => [
    ...boundary(resume).map((event) => ({ ...event, data: altered(event.data) })),
    ...missed(resume),
  ]),
  'repeated-boundary': replaying((resume) => [...boundary(resume), ...missed(resume)]),
  reordered: replaying((resume) => {
    const [first, second, ...rest] = missed(resume);
    return [second, first, ...rest].filter((event) => event !== undefined);
  }),
  'dropped-twice': once(
    (world, { session, response }) => {
      const connection = openSse(world, session, response);
      setTimeout(() => connection.cut(), READ_MS).unref();
    },
    async ({ stream, message }) => {
      // An abrupt end takes what the client has not read.
      await pause(READ_MS);
      stream.detach()?.cut();
      stream.add(message);
    },
  ),
  'empty-200': always((world, { session, response }) => {
    openSse(world, session, response).end();
  }),
  'html-page': once((_world, { response }) => answerHtmlPage(response)),
  'status-204': always((_world, { response }) => {
    response.writeHead(204).end();
  }),
  'status-405': always((_world, { response }) => answerStatus(response, 405, 'GET is not served', { Allow: 'POST' })),
  'status-404': always((world, { session, response }) => {
    world.sessions.delete(session.id);
    answerStatus(response, 404, 'the session is not known');
  }),
  'status-409': once((_world, { response }) => answerStatus(response, 409, 'the stream has a connection')),
  'status-503': once((_world, { response }) => answerStatus(response, 503, 'not now', { 'Retry-After': '1' })),
  'status-401': once((world, { response }) => {
    world.isTokenExpired = true;
    answerStatus(response, 401, 'the token has expired', { 'WWW-Authenticate': 'Bearer error="invalid_token"' });
  }),
  'redirect-same-origin': once((_world, { response }) => {
    response.writeHead(307, { Location: '/moved/mcp' }).end();
  }),
  'redirect-other-origin': once((world, { response }) => {
    response.writeHead(307, { Location: world.impostorUrl }).end();
  }),
} as const satisfies Partial<Record<FaultName, ResumeLie>>;

/** The other origin's answer to whoever follows the redirect. */
export function answerAsImpostor(world: World, { session, stream }: NonNullable<World['hit']>, resume: Resume): void {
  const other = new FaultySession(world.numbers, world.numbers.makeSessionId(), session.version);
  answerWith(world, resume, other.openStream(stream.label.kind, stream.requestId));
}

function close({ stream, message }: Scene): void {
  stream.detach()?.end();
  stream.add(message);
}

/** Answers a resume with what was never said on its stream. */
function answerWith(world: World, { session, stream, response }: Resume, foreign: ScriptedStream): void {
  for (const message of foreignScript(FOREIGN_EVENTS, foreign.requestId)) foreign.add(message);
  const connection = openSse(world, session, response, EVENT_STREAM);
  deliver(world, foreign, connection, foreign.events);
  if (stream.isFinished) connection.end();
}

function otherEpoch(epoch: string): string {
  const other = makeEpoch(Uint8Array.from(epoch, (letter) => letter.charCodeAt(0) + 1));
  return other === epoch ? makeEpoch(new Uint8Array(10)) : other;
}
