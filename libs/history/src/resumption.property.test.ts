import {
  anchorChecksum,
  formatEventId,
  formatStreamLabel,
  requestStream,
  standaloneStream,
  startChain,
  streamTag,
} from '@throughline/protocol';
import type { EventId, LogRecord, SessionId } from '@throughline/protocol';
import { attached, placed, sent } from '@throughline/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideAnchor, decideOpening } from './resumption.ts';
import type { AnchorFinding } from './resumption.ts';

const EPOCH = 'epochaaaaa';
const SESSION: SessionId = { epoch: EPOCH, partition: 11, from: 100, createdMs: 1, key: 'AAAAAAAAAAAAAAAAAAAAAA' };
const SESSION_TEXT = 'session-as-sent';
const START = 105;
const END = 1020;
/** A log in which every record differs; what lies below START is evicted. */
const LOG = new Map<number, LogRecord>();
for (let offset = START; offset < END; offset++) {
  const input =
    offset % 3 === 0
      ? attached(SESSION.key, standaloneStream(100), `a${offset}`)
      : sent(SESSION.key, requestStream(100 + (offset % 7)), `{"n":${offset}}`, { owner: 101 });
  LOG.set(offset, placed(input, offset, 1_767_225_600_000 + (offset >> 4)));
}

function find(offset: number): AnchorFinding {
  const record = LOG.get(offset);
  if (record !== undefined) return { found: 'record', record };
  return offset < START ? { found: 'evicted' } : { found: 'nothing-yet', attachedAt: END };
}

const CHARACTERS = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.~ é\n';

const cursors = fc
  .record({
    offset: fc.integer({ min: START, max: END - 1 }),
    stream: fc.oneof(
      fc.nat(2000).map((at) => requestStream(at)),
      fc.nat(2000).map((at) => standaloneStream(at)),
    ),
    requestId: fc.option(fc.oneof(fc.integer(), fc.constantFrom('a', 'call-7')), { nil: undefined }),
    seq: fc.nat(3000),
  })
  .map(({ offset, stream, requestId, seq }): EventId => {
    const record = LOG.get(offset);
    if (record === undefined) throw new TypeError('no record');
    return {
      epoch: EPOCH,
      partition: 11,
      offset,
      stream,
      ...(requestId === undefined || stream.kind === 'standalone' ? {} : { requestId }),
      seq,
      tag: streamTag(SESSION_TEXT, stream),
      crc: anchorChecksum(record),
      chain: startChain(SESSION_TEXT, stream),
    };
  });

function outcome(text: string): { readonly read: EventId } | { readonly refused: string } {
  const opening = decideOpening({
    lastEventId: text,
    sessionId: SESSION_TEXT,
    session: SESSION,
    currentEpoch: EPOCH,
    sessionEnded: false,
  });
  if (opening.do === 'finished') return { refused: 'finished' };
  if (opening.do === 'refuse') return { refused: opening.reason };
  const decision = decideAnchor(opening.cursor, find(opening.cursor.offset));
  return decision.do === 'resume'
    ? { read: opening.cursor }
    : { refused: decision.do === 'refuse' ? decision.reason : decision.do };
}

describe('resumption of cursors that were changed', () => {
  it('[RES-TAMPER] a cursor that was given out is accepted as it is', () => {
    fc.assert(
      fc.property(cursors, (cursor) => {
        expect(outcome(formatEventId(cursor))).toHaveProperty('read');
      }),
      { numRuns: 1000 },
    );
  });

  it('[RES-TAMPER] with one character changed, added or taken away a cursor is refused, or names the same place of the same stream', () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(
        cursors,
        fc.nat(),
        fc.constantFrom('replace', 'insert', 'remove'),
        fc.constantFrom(...CHARACTERS),
        (cursor, place, how, character) => {
          const text = formatEventId(cursor);
          const at = place % text.length;
          const changed =
            text.slice(0, at) + (how === 'remove' ? '' : character) + text.slice(how === 'insert' ? at : at + 1);
          fc.pre(changed !== text);
          const result = outcome(changed);
          if ('refused' in result) {
            seen.add(result.refused);
            return;
          }
          // Number, chain and request id are the client's own knowledge: they change nothing of what it gets.
          expect(result.read.offset).toBe(cursor.offset);
          expect(formatStreamLabel(result.read.stream)).toBe(formatStreamLabel(cursor.stream));
          expect(result.read.epoch).toBe(cursor.epoch);
          expect(result.read.partition).toBe(cursor.partition);
        },
      ),
      { numRuns: 20_000 },
    );
    for (const reason of ['cursor-malformed', 'cursor-foreign', 'epoch-mismatch', 'gap', 'beyond-end', 'diverged'])
      expect(seen).toContain(reason);
  });

  it('[RES-TAMPER] any string gets a decision', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...CHARACTERS), maxLength: 200 })),
        (text) => {
          expect(outcome(text)).toEqual({ refused: 'cursor-malformed' });
        },
      ),
      { numRuns: 2000 },
    );
  });
});
