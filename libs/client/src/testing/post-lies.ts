/** Misbehaviours in the answer to the POST of a call. */
import type { FaultName } from './fault-table.ts';
import type { Misbehaviour } from './misbehaviour.ts';
import { answerHtmlPage, answerStatus } from './plain-answer.ts';
import { openSse } from './sse-answer.ts';

type PostLie = Extract<Misbehaviour, { place: 'post' }>;

const lie = (doesRun: boolean, post: PostLie['post']): PostLie => ({ place: 'post', times: 1, doesRun, post });

export const POST_LIES = {
  'post-202': lie(true, (_world, _session, response) => {
    response.writeHead(202).end();
  }),
  'post-404': lie(false, (world, session, response) => {
    world.sessions.delete(session.id);
    answerStatus(response, 404, 'the session is not known');
  }),
  'post-503': lie(false, (_world, _session, response) =>
    answerStatus(response, 503, 'not now', { 'Retry-After': '1' }),
  ),
  'post-401': lie(false, (world, _session, response) => {
    world.isTokenExpired = true;
    answerStatus(response, 401, 'the token has expired', { 'WWW-Authenticate': 'Bearer error="invalid_token"' });
  }),
  'post-html-page': lie(true, (_world, _session, response) => answerHtmlPage(response)),
  'post-empty-200': lie(true, (world, session, response) => openSse(world, session, response).end()),
} as const satisfies Partial<Record<FaultName, PostLie>>;
