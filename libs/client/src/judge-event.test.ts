import {
  encodeText,
  extendChain,
  formatEventId,
  parseStreamLabel,
  standaloneStream,
  startChain,
  streamTag,
} from '@throughline/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eventDigest } from './event-digest.ts';
import { judgeEvent } from './judge-event.ts';
import { MAX_RECENT, newStream } from './stream-checkpoint.ts';
import type { StreamCheckpoint } from './stream-checkpoint.ts';
import type { EventVerdict, ReceivedEvent } from './verdict.ts';

const SESSION = 'k7q2f.0.5.1.AAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA';
const EPOCH = 'k7q2fk7q2f';
const LABEL = parseStreamLabel('r7')!;
const NAMES = { sessionId: SESSION, epoch: EPOCH };
const FIRST = { isResumed: false, proved: [] } as const;
const RESUMED = { isResumed: true, proved: [] } as const;
const PROVED = { isResumed: true, proved: ['session', 'epoch'] } as const;

/** What a server of Throughline sends on a stream whose messages hold `payloads`: written from SPEC ID-FORM and ID-CHECK. */
function chained(
  payloads: readonly string[],
  { epoch = EPOCH, session = SESSION, stream = LABEL, requestId = 3, from = 100 } = {},
): ReceivedEvent[] {
  let chain = startChain(session, stream);
  return payloads.map((data, index) => {
    chain = extendChain(chain, encodeText(data));
    const tag = streamTag(session, stream);
    const at = { epoch, partition: 0, offset: from + 10 * index, stream, requestId };
    return { id: formatEventId({ ...at, seq: index + 1, tag, crc: 9, chain }), data };
  });
}

function primer(seq: number, payloads: readonly string[] = []): ReceivedEvent {
  let chain = startChain(SESSION, LABEL);
  for (const data of payloads) chain = extendChain(chain, encodeText(data));
  const tag = streamTag(SESSION, LABEL);
  const at = { epoch: EPOCH, partition: 0, offset: 50, stream: LABEL, requestId: 3 };
  return { id: formatEventId({ ...at, seq, tag, crc: 9, chain }), data: '' };
}

function judge(
  events: readonly ReceivedEvent[],
  start: StreamCheckpoint = newStream('request', 3, NAMES),
): { readonly at: StreamCheckpoint; readonly said: string[] } {
  let at = start;
  const said = events.map((event) => {
    const verdict = judgeEvent(at, event, 'chained', RESUMED, 'strict');
    if (verdict.do === 'deliver' || verdict.do === 'advance') at = verdict.next;
    return verdict.do === 'reject' ? verdict.reason : verdict.do;
  });
  return { at, said };
}

const [E1, E2, E3, E4] = chained(['one', 'two', 'three', 'four']) as [
  ReceivedEvent,
  ReceivedEvent,
  ReceivedEvent,
  ReceivedEvent,
];

describe('events of Throughline', () => {
  it.each<[title: string, after: ReceivedEvent[], next: ReceivedEvent, verdict: string]>([
    ['the next one goes on', [E1, E2], E3, 'deliver'],
    ['the first one of a stream goes on', [], E1, 'deliver'],
    ['a stream does not begin with its second event', [], E2, 'gap'],
    ['one is missing', [E1], E3, 'gap'],
    ['two are missing', [E1], E4, 'gap'],
    ['the last one again is dropped', [E1, E2], E2, 'drop'],
    ['one before the last is a reset', [E1, E2, E3], E2, 'replay-reset'],
    ['from the beginning is a reset', [E1, E2, E3], E1, 'replay-reset'],
    ['the last one with another payload', [E1, E2], { ...E2, data: 'TWO' }, 'diverged'],
    ['the next one with another payload', [E1, E2], { ...E3, data: 'THREE' }, 'diverged'],
    ['the right number, after other content before', [E1, E2], chained(['one', 'TWO', 'three'])[2]!, 'diverged'],
    ['a cursor for what was processed', [E1, E2], primer(2, ['one', 'two']), 'advance'],
    ['a cursor before anything', [], primer(0), 'advance'],
    ['a cursor ahead', [E1], primer(2, ['one', 'two']), 'gap'],
    ['a cursor behind', [E1, E2], primer(1, ['one']), 'replay-reset'],
    ['a cursor over other content', [E1, E2], primer(2, ['one', 'TWO']), 'diverged'],
    ['another epoch', [E1], chained(['one', 'two'], { epoch: 'zzzzzzzzzz' })[1]!, 'epoch-mismatch'],
    ['another session', [E1], chained(['one', 'two'], { session: `${SESSION}x` })[1]!, 'foreign-event'],
    ['another call', [E1], chained(['one', 'two'], { stream: parseStreamLabel('r8')! })[1]!, 'foreign-event'],
    ['another call, as the first event', [], chained(['one'], { requestId: 4 })[0]!, 'foreign-event'],
    ['the standalone stream', [], chained(['one'], { stream: standaloneStream(7) })[0]!, 'foreign-event'],
    ['an id of another server', [E1], { id: '2', data: 'two' }, 'malformed-id'],
    ['no id', [E1], { id: null, data: 'two' }, 'malformed-id'],
    ['an id that is cut', [E1], { ...E2, id: E2.id!.slice(0, -1) }, 'malformed-id'],
  ])('[CLIENT-CHAINED] %s', (_title, after, next, verdict) => {
    const { at, said } = judge(after);
    expect(said).toEqual(after.map(() => 'deliver'));
    const [last] = judge([next], at).said;
    expect(last).toBe(verdict);
  });

  it('[CLIENT-CHAINED] two that changed places are found at the first of them', () => {
    expect(judge([E1, E3, E2]).said).toEqual(['deliver', 'gap', 'deliver']);
  });

  it('[CLIENT-CHAINED] an error that the gateway made ends a stream; anything else may not come that way', () => {
    const tag = streamTag(SESSION, LABEL);
    const at = { epoch: EPOCH, partition: 0, offset: 50, stream: LABEL, requestId: 3 };
    const id = formatEventId({ ...at, seq: 'end', tag, crc: 0, chain: new Uint8Array(8) });
    const error = '{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"gone"}}';
    const result = '{"jsonrpc":"2.0","id":3,"result":{}}';
    expect(judge([E1, { id, data: error }]).said).toEqual(['deliver', 'deliver']);
    expect(judge([E1, { id, data: result }]).said).toEqual(['deliver', 'diverged']);
    expect(judge([E1, { id, data: 'no JSON' }]).said).toEqual(['deliver', 'diverged']);
  });

  it('[CLIENT-CHAINED] any change of a sequence but the repetition of an event just taken is rejected at or before its end', () => {
    const payloads = ['a', 'b', 'c', 'd', 'e', 'f'];
    const events = chained(payloads);
    // The last event stays as it is: what is cut off at the end is not to be seen.
    const position = fc.nat(events.length - 2);
    const mutation = fc.oneof(
      position.map((at) => events.toSpliced(at, 1)),
      fc
        .tuple(position, position)
        .filter(([a, b]) => a !== b)
        .map(([a, b]) => events.with(a, events[b]!)),
      position.map((at) => events.with(at, { ...events[at]!, data: `${events[at]!.data}!` })),
      fc
        .tuple(position, position)
        .filter(([a, b]) => b < a - 1)
        .map(([a, b]) => events.toSpliced(a, 0, events[b]!)),
    );
    fc.assert(
      fc.property(mutation, (mutated) => {
        const { said } = judge(mutated);
        expect(said.every((verdict) => ['deliver', 'drop'].includes(verdict))).toBe(false);
      }),
    );
    expect(judge(events).said).toEqual(events.map(() => 'deliver'));
  });
});

/** After `seq` 1041 of the source document, whose payload was `p1041`. */
const AT_1041: StreamCheckpoint = {
  ...newStream('standalone', null, { sessionId: 'S', epoch: 'E' }),
  lastEventId: '1041',
  seq: 1041,
  last: { id: '1041', digest: eventDigest('1041', 'p1041') },
};

function outcome(verdict: EventVerdict): string {
  return verdict.do === 'reject' ? verdict.reason : verdict.do;
}

describe('consecutive ids', () => {
  it.each<[id: string | null, data: string, verdict: string]>([
    ['1042', 'p', 'deliver'],
    ['1043', 'p', 'gap'],
    ['1055', 'p', 'gap'],
    ['1041', 'p1041', 'drop'],
    ['1041', 'other', 'diverged'],
    ['1041', '', 'advance'],
    ['1042', '', 'advance'],
    ['1040', 'p', 'replay-reset'],
    ['1', 'p', 'replay-reset'],
    ['0', '', 'replay-reset'],
    ['01042', 'p', 'malformed-id'],
    ['1042.0', 'p', 'malformed-id'],
    ['9007199254740993', 'p', 'malformed-id'],
    ['x', 'p', 'malformed-id'],
    [null, 'p', 'malformed-id'],
  ])('[CLIENT-CONSECUTIVE] after 1041, an event %j with the payload %j: %s', (id, data, verdict) => {
    expect(outcome(judgeEvent(AT_1041, { id, data }, 'consecutive', PROVED, 'strict'))).toBe(verdict);
    expect(outcome(judgeEvent(AT_1041, { id, data }, 'consecutive', RESUMED, 'compatible'))).toBe(verdict);
  });

  it('[CLIENT-CONSECUTIVE] every later event is judged as the first one', () => {
    const first = judgeEvent(AT_1041, { id: '1042', data: 'p' }, 'consecutive', PROVED, 'strict');
    if (first.do !== 'deliver') throw new Error(first.do);
    expect(outcome(judgeEvent(first.next, { id: '1043', data: 'p' }, 'consecutive', PROVED, 'strict'))).toBe('deliver');
    expect(outcome(judgeEvent(first.next, { id: '1044', data: 'p' }, 'consecutive', PROVED, 'strict'))).toBe('gap');
    expect(outcome(judgeEvent(first.next, { id: '1042', data: 'q' }, 'consecutive', PROVED, 'strict'))).toBe(
      'diverged',
    );
  });

  it('[CLIENT-POLICY] a server that names session and epoch proves enough for strict, and never its content', () => {
    const verdict = judgeEvent(AT_1041, { id: '1042', data: 'p' }, 'consecutive', PROVED, 'strict');
    expect(verdict).toMatchObject({ do: 'deliver', unproven: ['content'] });
  });

  it.each([
    [[], ['session', 'epoch', 'content']],
    [['session'], ['epoch', 'content']],
    [['epoch'], ['session', 'content']],
  ] as const)(
    '[CLIENT-POLICY] with %j proved, strict rejects and compatible says what is missing',
    (proved, missing) => {
      const facts = { isResumed: true, proved };
      const event = { id: '1042', data: 'p' };
      expect(outcome(judgeEvent(AT_1041, event, 'consecutive', facts, 'strict'))).toBe('unproven');
      expect(judgeEvent(AT_1041, event, 'consecutive', facts, 'compatible')).toMatchObject({
        do: 'deliver',
        unproven: missing,
      });
    },
  );
});

describe('opaque ids', () => {
  const at: StreamCheckpoint = {
    ...newStream('request', 1, { sessionId: 'S', epoch: null }),
    lastEventId: 'c',
    last: { id: 'c', digest: eventDigest('c', 'C') },
    recent: [
      { id: 'a', digest: eventDigest('a', 'A') },
      { id: 'b', digest: eventDigest('b', 'B') },
    ],
  };

  it.each<[id: string | null, data: string, verdict: string]>([
    ['d', 'D', 'deliver'],
    ['c', 'C', 'drop'],
    ['c', 'other', 'diverged'],
    ['b', 'B', 'replay-reset'],
    ['a', 'A', 'replay-reset'],
    ['c', '', 'advance'],
    ['z', '', 'advance'],
    [null, 'D', 'deliver'],
    // Numbers without an agreement about them are names like others.
    ['99', 'D', 'deliver'],
  ])('[CLIENT-OPAQUE] after a, b, c, an event %j with the payload %j: %s', (id, data, verdict) => {
    expect(outcome(judgeEvent(at, { id, data }, 'opaque', RESUMED, 'compatible'))).toBe(verdict);
    // On the connection that brought the others nothing has to be proved.
    expect(outcome(judgeEvent(at, { id, data }, 'opaque', FIRST, 'strict'))).toBe(verdict);
  });

  it('[CLIENT-POLICY] strict does not take a resumed stream whose ids say nothing; compatible says what is missing', () => {
    expect(outcome(judgeEvent(at, { id: 'd', data: 'D' }, 'opaque', PROVED, 'strict'))).toBe('unproven');
    const verdict = judgeEvent(at, { id: 'd', data: 'D' }, 'opaque', PROVED, 'compatible');
    expect(verdict).toMatchObject({ do: 'deliver', unproven: ['sequence', 'content'] });
  });

  it('[CLIENT-OPAQUE] what is remembered of a stream is bounded', () => {
    let now = newStream('request', 1, { sessionId: 'S', epoch: null });
    for (let index = 0; index < 1000; index++) {
      const verdict = judgeEvent(now, { id: `e${index}`, data: 'x' }, 'opaque', FIRST, 'strict');
      if (verdict.do !== 'deliver') throw new Error(verdict.do);
      now = verdict.next;
    }
    expect(now.recent).toHaveLength(MAX_RECENT);
    expect(now.recent.at(-1)?.id).toBe('e998');
  });
});

it('[CLIENT-DIGEST] the digest is SHA-256 over id, colon and payload in UTF-8', () => {
  // printf '1041:{"a":"é"}' | sha256sum
  expect(eventDigest('1041', '{"a":"é"}')).toBe('0607a6d58e28a9f99bd6fcf1311c77fb1d9309286567ef04a29083343171c39b');
});
