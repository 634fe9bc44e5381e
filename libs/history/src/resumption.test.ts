import { anchorChecksum, formatEventId, requestStream, standaloneStream, streamTag } from '@throughline/protocol';
import type { EventId, ResumptionReason, SessionId, StreamKind, StreamLabel } from '@throughline/protocol';
import { placed, sent } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { answerRefusal, decideAnchor, decideOpening } from './resumption.ts';
import type { ResumeRequest } from './resumption.ts';

const EPOCH = 'epochaaaaa';
const OTHER_EPOCH = 'epochbbbbb';
const KEY = 'AAAAAAAAAAAAAAAAAAAAAA';
const SESSION: SessionId = { epoch: EPOCH, partition: 3, from: 40, createdMs: 1, key: KEY };
const SESSION_TEXT = 'the-session-id-as-sent';
const ANCHOR = placed(sent(KEY, requestStream(7), '{"jsonrpc":"2.0"}', { owner: 12 }), 50);
const STREAMS: Record<StreamKind, StreamLabel> = { request: requestStream(7), standalone: standaloneStream(44) };

function cursorOf(stream: StreamLabel, change: Partial<EventId> = {}, sessionText = SESSION_TEXT): EventId {
  return {
    epoch: EPOCH,
    partition: 3,
    offset: 50,
    stream,
    seq: 4,
    tag: streamTag(sessionText, stream),
    crc: anchorChecksum(ANCHOR),
    chain: new Uint8Array(8),
    ...change,
  };
}

function request(lastEventId: string, change: Partial<ResumeRequest> = {}): ResumeRequest {
  return {
    lastEventId,
    sessionId: SESSION_TEXT,
    session: SESSION,
    currentEpoch: EPOCH,
    sessionEnded: false,
    ...change,
  };
}

/** The decision of a whole resume: what is refused before anything is read, else what the read found. */
function decide(cursor: EventId | string, held: 'anchor' | 'other' | 'evicted' | 'nothing', session = SESSION) {
  const text = typeof cursor === 'string' ? cursor : formatEventId(cursor);
  const opening = decideOpening(request(text, { session }));
  if (opening.do !== 'read') return opening.do === 'refuse' ? opening.reason : opening.do;
  const decision = decideAnchor(
    opening.cursor,
    held === 'anchor'
      ? { found: 'record', record: ANCHOR }
      : held === 'other'
        ? { found: 'record', record: placed(sent(KEY, requestStream(7), '{"other":1}', { owner: 12 }), 50) }
        : held === 'evicted'
          ? { found: 'evicted' }
          : { found: 'nothing-yet', attachedAt: 50 },
  );
  return decision.do === 'refuse' ? decision.reason : decision.do;
}

type Answer = readonly [request: 'in-band' | 400 | 404, standalone: 'in-band' | 400 | 404, session: 'lives' | 'ends'];

/** The table, line by line: what the client sent, what is held, the reason, and what a GET of each kind answers. */
const TABLE: readonly (readonly [ResumptionReason, (stream: StreamLabel) => ReturnType<typeof decide>, Answer])[] = [
  ['cursor-malformed', () => decide('no-such-thing', 'anchor'), [400, 400, 'lives']],
  ['cursor-foreign', (stream) => decide(cursorOf(stream, {}, 'another-session'), 'anchor'), [400, 400, 'lives']],
  ['epoch-mismatch', (stream) => decide(cursorOf(stream, { epoch: OTHER_EPOCH }), 'anchor'), ['in-band', 404, 'ends']],
  ['gap', (stream) => decide(cursorOf(stream), 'evicted'), ['in-band', 404, 'ends']],
  ['beyond-end', (stream) => decide(cursorOf(stream), 'nothing'), ['in-band', 404, 'ends']],
  ['diverged', (stream) => decide(cursorOf(stream), 'other'), ['in-band', 404, 'ends']],
];

describe('resumption', () => {
  it.each(['request', 'standalone'] as const)(
    '[RES-RESUME] a %s stream goes on if the anchor is there and equal',
    (kind) => {
      expect(decide(cursorOf(STREAMS[kind]), 'anchor')).toBe('resume');
    },
  );

  it.each(TABLE)('[RES-REASON] %s is found on a stream of either kind', (reason, decideOn) => {
    expect(decideOn(STREAMS.request)).toBe(reason);
    expect(decideOn(STREAMS.standalone)).toBe(reason);
  });

  it.each(TABLE)(
    '[RES-ANSWER] %s is told as the table says',
    (reason, _decideOn, [onRequest, onStandalone, session]) => {
      expect(answerRefusal(reason, 'request')).toEqual({ answer: onRequest, endsSession: session === 'ends' });
      expect(answerRefusal(reason, 'standalone')).toEqual({ answer: onStandalone, endsSession: session === 'ends' });
    },
  );

  it('[RES-ANSWER] a session that has ended is not ended again', () => {
    expect(answerRefusal('session-ended', 'request')).toEqual({ answer: 'in-band', endsSession: false });
    expect(answerRefusal('session-ended', 'standalone')).toEqual({ answer: 404, endsSession: false });
  });

  it('[RES-FOREIGN] a cursor is foreign if partition, session or stream differ', () => {
    const foreign = { do: 'refuse', reason: 'cursor-foreign' };
    const own = cursorOf(STREAMS.request);
    expect(decideOpening(request(formatEventId({ ...own, partition: 4 })))).toMatchObject(foreign);
    expect(decideOpening(request(formatEventId({ ...own, stream: requestStream(8) })))).toMatchObject(foreign);
    expect(decideOpening(request(formatEventId({ ...own, stream: standaloneStream(7) })))).toMatchObject(foreign);
    expect(decideOpening(request(formatEventId(own), { sessionId: 'another-session' }))).toMatchObject(foreign);
    expect(decideOpening(request(formatEventId(own)))).toMatchObject({ do: 'read' });
  });

  it('[RES-ORDER] foreign comes before the end mark, the end mark before the epoch, the epoch before the end of the session', () => {
    const gone = { session: { ...SESSION, epoch: OTHER_EPOCH }, currentEpoch: EPOCH };
    const end = formatEventId(cursorOf(STREAMS.request, { seq: 'end', epoch: OTHER_EPOCH }));
    expect(decideOpening(request(end))).toEqual({ do: 'finished' });
    expect(decideOpening(request(end, { sessionEnded: true }))).toEqual({ do: 'finished' });
    expect(decideOpening(request(end, gone))).toEqual({ do: 'finished' });
    const foreignEnd = formatEventId(cursorOf(STREAMS.request, { seq: 'end' }, 'another-session'));
    expect(decideOpening(request(foreignEnd))).toMatchObject({ reason: 'cursor-foreign' });
    const former = formatEventId(cursorOf(STREAMS.request, { epoch: OTHER_EPOCH }));
    expect(decideOpening(request(former, { sessionEnded: true }))).toMatchObject({ reason: 'epoch-mismatch' });
    expect(decideOpening(request(formatEventId(cursorOf(STREAMS.request)), { sessionEnded: true }))).toMatchObject({
      reason: 'session-ended',
      cursor: { offset: 50 },
    });
  });

  it('[RES-ORDER] a session of a former epoch is refused for its epoch, whatever epoch the cursor names', () => {
    for (const epoch of [EPOCH, OTHER_EPOCH]) {
      const text = formatEventId(cursorOf(STREAMS.request, { epoch }));
      const opening = decideOpening(request(text, { session: { ...SESSION, epoch: OTHER_EPOCH } }));
      expect(opening).toMatchObject({ do: 'refuse', reason: 'epoch-mismatch' });
    }
  });

  it('[RES-GONE] a session that is gone says so to a cursor that is not its own, and names no request', () => {
    const foreign = formatEventId(cursorOf(STREAMS.request, {}, 'another-session'));
    for (const text of ['no-such-thing', '', foreign]) {
      expect(decideOpening(request(text, { sessionEnded: true }))).toEqual({
        do: 'refuse',
        reason: 'session-ended',
        cursor: null,
      });
      const former = { ...SESSION, epoch: OTHER_EPOCH };
      expect(decideOpening(request(text, { session: former, sessionEnded: true }))).toEqual({
        do: 'refuse',
        reason: 'epoch-mismatch',
        cursor: null,
      });
    }
  });

  it('[RES-ANCHOR] the first record read must lie at the very offset: a later one is another history', () => {
    const cursor = cursorOf(STREAMS.request);
    expect(decideAnchor(cursor, { found: 'record', record: { ...ANCHOR, offset: 51 } })).toEqual({
      do: 'refuse',
      reason: 'diverged',
    });
  });

  it.each([
    ['key', { key: new Uint8Array([1]) }],
    ['value', { value: new Uint8Array([1]) }],
    ['no value', { value: null }],
    ['headers', { headers: ANCHOR.headers.slice(1) }],
    ['timestamp', { timestampMs: ANCHOR.timestampMs + 1 }],
  ])('[RES-ANCHOR] an anchor with another %s is refused as diverged', (_what, change) => {
    expect(decideAnchor(cursorOf(STREAMS.request), { found: 'record', record: { ...ANCHOR, ...change } })).toEqual({
      do: 'refuse',
      reason: 'diverged',
    });
  });

  it('[RES-BEYOND] nothing at the anchor is waited for until the own attachment is acknowledged at or before it', () => {
    const at = (attachedAt: number | null) =>
      decideAnchor(cursorOf(STREAMS.request), { found: 'nothing-yet', attachedAt });
    expect(at(null)).toEqual({ do: 'wait' });
    expect(at(51)).toEqual({ do: 'wait' });
    expect(at(50)).toEqual({ do: 'refuse', reason: 'beyond-end' });
    expect(at(49)).toEqual({ do: 'refuse', reason: 'beyond-end' });
  });
});
