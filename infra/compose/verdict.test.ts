import { encodeText, extendChain, formatEventId, requestStream, startChain, streamTag } from '@throughline/protocol';
import type { SseItem } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { formatRows, judge } from './verdict.ts';
import type { CallSeen } from './verdict.ts';

const SESSION = 'some-session';
const CALL = requestStream(7);

/** The stream of a call as a faithful gateway writes it: two steps and a result. */
function makeItems(stream = CALL): SseItem[] {
  let chain = startChain(SESSION, stream);
  return ['', '{"progress":1,"total":2}', '{"progress":2,"total":2}', '{"result":{}}'].map((data, seq) => {
    if (data !== '') chain = extendChain(chain, encodeText(data));
    const tag = streamTag(SESSION, stream);
    const id = formatEventId({ epoch: 'aaaaaaaaaa', partition: 0, offset: seq, stream, seq, tag, crc: 0, chain });
    return { kind: 'event', id, data };
  });
}

const faithful: CallSeen = {
  sessionId: SESSION,
  steps: 2,
  progress: [1, 2],
  result: 'done 2',
  items: makeItems(),
  observed: makeItems(),
  connections: 2,
};
const broken = (change: Partial<CallSeen>): readonly string[] =>
  judge({ ...faithful, ...change })
    .filter(({ isKept }) => !isKept)
    .map(({ check }) => check);

describe('the verdict over a call', () => {
  it('[CLI-COMPOSE] a call whose events came once and in order, over several connections, is kept', () => {
    expect(broken({})).toEqual([]);
    const listening: SseItem = { ...makeItems(requestStream(8))[1]!, data: '{"method":"other"}' };
    expect(broken({ items: [listening, ...makeItems()] })).toEqual([]);
  });

  it('[CLI-COMPOSE] a step that is missing, repeated or out of order, a lost event and another content are broken', () => {
    for (const progress of [[2], [1, 1, 2], [2, 1], [1]])
      expect(broken({ progress })).toEqual(['progress, once each and in order']);
    expect(broken({ result: 'done 1' })).toEqual(['result']);
    const [first, second, third, last] = makeItems() as [SseItem, SseItem, SseItem, SseItem];
    for (const items of [
      [first, second, last],
      [first, second, second, third, last],
      [first, second, { ...third, data: 'x' }, last],
      [],
    ])
      expect(broken({ items })).toContain('messages of the stream, ids and chain');
    expect(broken({ observed: [first, second, third] })).toEqual([
      'the same for an uninterrupted observer',
      'client and observer',
    ]);
  });

  it('[CLI-COMPOSE] a call that nothing interrupted proves nothing', () => {
    expect(broken({ connections: 1 })).toEqual(['connections of the call']);
    expect(formatRows(judge({ ...faithful, connections: 1 }))).toMatch(/connections of the call +2 or more +1 +BROKEN/);
  });
});
