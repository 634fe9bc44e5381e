import { describe, expect, it } from 'vitest';
import { chooseNumbering } from './choose-numbering.ts';
import { headOf } from './http-exchange.ts';
import { judgeAnswer } from './judge-answer.ts';
import { newStream } from './stream-checkpoint.ts';

const SSE = 'text/event-stream';
const at = newStream('standalone', null, { sessionId: 'S', epoch: 'E' });

describe('the head of an answer to a resume', () => {
  it.each<[status: number, sessionId: string | null, epoch: string | null, type: string | null, verdict: string]>([
    [200, 'S', 'E', SSE, 'read session,epoch'],
    [200, 'S', 'E', 'Text/Event-Stream; charset=utf-8', 'read session,epoch'],
    [200, 'S', null, SSE, 'read session'],
    [200, null, 'E', SSE, 'read epoch'],
    [200, null, null, SSE, 'read '],
    [200, 'T', 'E', SSE, 'session-changed'],
    [200, 'S', 'F', SSE, 'epoch-mismatch'],
    [200, 'T', 'F', SSE, 'session-changed'],
    [200, 's', 'E', SSE, 'session-changed'],
    [204, 'S', 'E', null, 'finished'],
    [405, null, null, 'text/html', 'finished'],
    [400, 'S', 'E', 'application/json', 'session-invalid'],
    [403, null, null, null, 'session-invalid'],
    [404, 'S', 'E', SSE, 'session-invalid'],
    [410, null, null, null, 'session-invalid'],
    [301, null, null, null, 'session-invalid'],
    [408, null, null, null, 'retry'],
    [409, null, null, null, 'retry'],
    [429, null, null, null, 'retry'],
    [500, null, null, null, 'retry'],
    [502, null, null, 'text/html', 'retry'],
    [503, 'S', 'E', SSE, 'retry'],
    [200, 'S', 'E', 'text/html', 'retry'],
    [200, 'S', 'E', 'text/event-stream-not', 'retry'],
    [200, 'S', 'E', null, 'retry'],
  ])('[CLIENT-ANSWER] %d with session %j, epoch %j, type %j: %s', (status, sessionId, epoch, contentType, expected) => {
    const verdict = judgeAnswer(at, { status, sessionId, epoch, contentType, isUnauthorized: false });
    const said =
      verdict.do === 'reject' ? verdict.reason : verdict.do === 'read' ? `read ${verdict.proved.join()}` : verdict.do;
    expect(said).toBe(expected);
  });

  it.each<[status: number, headers: Record<string, string>, verdict: string]>([
    [401, {}, 'retry'],
    [401, { 'WWW-Authenticate': 'Bearer' }, 'retry'],
    [403, { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' }, 'retry'],
    [403, {}, 'reject'],
  ])(
    '[CLIENT-ANSWER] [CLIENT-AUTH] %d with %o says nothing about the session where it asks for credentials: %s',
    (status, headers, expected) => {
      expect(judgeAnswer(at, headOf(new Response(null, { status, headers }))).do).toBe(expected);
    },
  );

  it('[CLIENT-ANSWER] a name that was never told proves nothing and is no change', () => {
    const unnamed = newStream('standalone', null, { sessionId: null, epoch: null });
    const head = { status: 200, sessionId: 'S', epoch: 'E', contentType: SSE, isUnauthorized: false };
    expect(judgeAnswer(unnamed, head)).toEqual({ do: 'read', proved: [] });
  });
});

describe('how a server numbers its events', () => {
  const chained = 'k7q2fk7q2f.17.104857600.r99812~7.42.Xh0anzocLl4dCnucPwAAAA';
  it.each([
    [chained, 'auto', null, 'chained'],
    [chained, 'opaque', null, 'chained'],
    ['17', 'auto', 'E', 'consecutive'],
    ['17', 'auto', null, 'opaque'],
    ['17', 'opaque', 'E', 'opaque'],
    ['17', 'consecutive', null, 'consecutive'],
    ['a_1', 'auto', 'E', 'opaque'],
    ['a_1', 'consecutive', null, 'consecutive'],
    ['007', 'auto', 'E', 'opaque'],
  ] as const)('[CLIENT-NUMBERING] by the id %j, eventIds %j and epoch %j: %s', (id, eventIds, epoch, numbering) => {
    expect(chooseNumbering(id, { eventIds, epoch })).toBe(numbering);
  });
});
