import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHAIN_BYTES, formatEventId, MAX_EVENT_ID_LENGTH, parseEventId } from './event-id.ts';
import type { EventId } from './event-id.ts';
import { MAX_PARTITION } from './position.ts';
import { formatJsonRpcId } from './stream-label.ts';
import type { JsonRpcId, StreamLabel } from './stream-label.ts';

const epoch = fc.string({ unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz234567'), minLength: 10, maxLength: 10 });
const offset = fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, 1, Number.MAX_SAFE_INTEGER));
const partition = fc.oneof(fc.nat(MAX_PARTITION), fc.constantFrom(0, MAX_PARTITION));
const stream: fc.Arbitrary<StreamLabel> = fc.record({ kind: fc.constantFrom('request', 'standalone'), at: offset });
const binary = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const safeText = fc.stringMatching(/^[A-Za-z0-9_-]{1,31}$/);
const jsonRpcId: fc.Arbitrary<JsonRpcId> = fc.oneof(
  safeText,
  fc.maxSafeInteger(),
  fc.constantFrom(0, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, '-', '_', '0', 'end'),
);
const fields = {
  epoch,
  partition,
  offset,
  stream,
  seq: fc.oneof(offset, fc.constant('end' as const)),
  tag: binary(4),
  crc: fc.nat(0xffffffff),
  chain: binary(CHAIN_BYTES),
};
const bareId: fc.Arbitrary<EventId> = fc.record(fields);
/** Ids as they can be written: a request id on a request stream only. */
const eventId: fc.Arbitrary<EventId> = fc
  .record({ ...fields, requestId: fc.option(jsonRpcId, { nil: undefined }) })
  .map(({ requestId, ...id }) =>
    requestId === undefined || id.stream.kind === 'standalone' ? id : { ...id, requestId },
  );

/** Text that is nearly an event id, so that a parser gets deep before it finds out. */
const nearly = fc
  .tuple(eventId, fc.nat(), fc.string({ unit: 'grapheme', maxLength: 3 }), fc.nat(3))
  .map(([id, place, insert, remove]) => {
    const text = formatEventId(id);
    const at = place % (text.length + 1);
    return text.slice(0, at) + insert + text.slice(at + remove);
  });
const shuffled = fc
  .array(fc.constantFrom('.', '~', '_', '-', 'r', 's', 'end', '0', '7', 'abcdefghij', 'AAAAAAAAAAAAAAAAAAAAAA'))
  .map((parts) => parts.join(''));

describe('event ids', () => {
  it('[ID-FORM] what was formatted is read back field by field', () => {
    fc.assert(
      fc.property(eventId, (id) => {
        expect(parseEventId(formatEventId(id))).toEqual(id);
      }),
      { numRuns: 1000 },
    );
  });

  it('[ID-TOTAL] any text is an event id or null, and an event id has one text only', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string(), nearly, shuffled);
    fc.assert(
      fc.property(text, (candidate) => {
        const id = parseEventId(candidate);
        if (id !== null) expect(formatEventId(id)).toBe(candidate);
      }),
      { numRuns: 5000 },
    );
  });

  it('[ID-LENGTH] no event id is longer than 160 characters, whatever its request is called', () => {
    const anyRequest = fc.oneof(jsonRpcId, fc.string({ unit: 'binary', maxLength: 500 }), fc.double());
    fc.assert(
      fc.property(bareId, anyRequest, (id, requestId) => {
        const text = formatEventId({ ...id, requestId });
        expect(text.length).toBeLessThanOrEqual(MAX_EVENT_ID_LENGTH);
        expect(parseEventId(text)).not.toBeNull();
      }),
      { numRuns: 1000 },
    );
    expect(MAX_EVENT_ID_LENGTH).toBe(160);
  });

  it('[ID-LENGTH] the longest event id of all fits and is read back', () => {
    const longest: EventId = {
      epoch: 'zzzzzzzzzz',
      partition: MAX_PARTITION,
      offset: Number.MAX_SAFE_INTEGER,
      stream: { kind: 'request', at: Number.MAX_SAFE_INTEGER },
      requestId: 'x'.repeat(31),
      seq: Number.MAX_SAFE_INTEGER,
      tag: new Uint8Array(4).fill(255),
      crc: 0xffffffff,
      chain: new Uint8Array(8).fill(255),
    };
    const text = formatEventId(longest);
    // 10 epoch, 10 partition, 16 offset, 17 label, 1 tilde, 32 request id, 16 seq, 22 check, 5 dots.
    expect(text).toHaveLength(129);
    expect(parseEventId(text)).toEqual(longest);
  });

  it('[ID-SAFE] an event id is six fields of A-Z a-z 0-9 _ - ~, so it needs no escaping in SSE and HTTP', () => {
    const anyRequest = fc.oneof(jsonRpcId, fc.string({ unit: 'binary' }));
    fc.assert(
      fc.property(bareId, anyRequest, (id, requestId) => {
        const text = formatEventId({ ...id, requestId });
        expect(text).toMatch(/^[A-Za-z0-9_-]+\.[0-9]+\.[0-9]+\.[A-Za-z0-9_~-]+\.(?:[0-9]+|end)\.[A-Za-z0-9_-]{22}$/);
      }),
      { numRuns: 1000 },
    );
  });

  it('[ID-REQUEST] a request id that can be written comes back with its type, any other is left out', () => {
    const anyRequest = fc.oneof(jsonRpcId, fc.string(), fc.double());
    fc.assert(
      fc.property(bareId, anyRequest, (bare, requestId) => {
        const id: EventId = { ...bare, stream: { kind: 'request', at: 5 } };
        const read = parseEventId(formatEventId({ ...id, requestId }));
        const expected = formatJsonRpcId(requestId) === null ? id : { ...id, requestId };
        expect(read).toEqual(expected);
      }),
      { numRuns: 1000 },
    );
  });
});
