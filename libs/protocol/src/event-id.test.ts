import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { isEpoch, makeEpoch } from './epoch.ts';
import { equalBytes, extendChain, formatEventId, parseEventId, startChain, streamTag } from './event-id.ts';
import type { EventId } from './event-id.ts';
import { makeRecord } from './event-record.ts';
import { anchorChecksum, encodeText } from './record.ts';
import { requestStream, standaloneStream } from './stream-label.ts';

// The literals of this file were computed with Python's hashlib and zlib, not with this package.
const SESSION = 'k7q2fabcde.17.1000.1767225600000.AAECAwQFBgcICQoLDA0ODw.ayPNmPA4XC9sgMa5QL4isA';
const STREAM = requestStream(99812);
const PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}';
const RESULT = '{"jsonrpc":"2.0","id":7,"result":{"text":"é"}}';
const LITERAL = 'k7q2fabcde.17.104857600.r99812~7.2.aA1W2m8TEV7lMmnipVsgLg';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));

const ANCHOR = {
  ...makeRecord('message', 'AAECAwQFBgcICQoLDA0ODw', RESULT, { stream: 'r99812', owner: '104857000', end: '1' }),
  offset: 104857600,
  timestampMs: 1767225601234,
};

describe('the check of an event id', () => {
  it('[ID-CHECK] bytes 0 to 3 are the start of SHA-256 over session id, newline, stream label', () => {
    expect(hex(streamTag(SESSION, STREAM))).toBe('680d56da');
    expect(hex(streamTag(SESSION, standaloneStream(104)))).toBe('821570c1');
    const independent = createHash('sha256').update(`${SESSION}\nr99812`).digest('hex').slice(0, 8);
    expect(hex(streamTag(SESSION, STREAM))).toBe(independent);
  });

  it('[ID-CHECK] bytes 4 to 7 are the CRC-32 of key, NUL, value, NUL, each header as name NUL value NUL, timestamp', () => {
    const text =
      `AAECAwQFBgcICQoLDA0ODw\0${RESULT}\0` +
      'v\x001\0type\0message\0stream\0r99812\0owner\x00104857000\0end\x001\x001767225601234';
    expect(anchorChecksum(ANCHOR)).toBe(0x6f13115e);
    expect(anchorChecksum(ANCHOR)).toBe(crc32(text));
  });

  it('[ID-CHECK] changes with the key, the value, a header, the order of headers and the timestamp', () => {
    const [first, second, ...others] = ANCHOR.headers;
    if (first === undefined || second === undefined) throw new Error('the anchor needs headers');
    const variants = [
      ANCHOR,
      { ...ANCHOR, key: encodeText('AAECAwQFBgcICQoLDA0ODg') },
      { ...ANCHOR, value: encodeText(RESULT.replace('7', '8')) },
      { ...ANCHOR, value: null },
      { ...ANCHOR, headers: [second, first, ...others] },
      { ...ANCHOR, headers: ANCHOR.headers.slice(1) },
      { ...ANCHOR, timestampMs: ANCHOR.timestampMs + 1 },
    ];
    expect(new Set(variants.map(anchorChecksum)).size).toBe(variants.length);
  });

  it('[ID-CHECK] a record without key, value and headers has a checksum, and so has one with odd bytes', () => {
    expect(anchorChecksum({ key: null, value: null, headers: [], offset: 0, timestampMs: 0 })).toBe(3650677182);
    const odd = {
      key: encodeText('k'),
      value: new Uint8Array(0),
      headers: [
        ['né', Uint8Array.of(0xff)],
        ['a', new Uint8Array(0)],
        ['a', encodeText('x')],
      ] as const,
      offset: 0,
      timestampMs: 5,
    };
    expect(anchorChecksum(odd)).toBe(1488055036);
  });

  it('[ID-CHAIN] c0 is the start of SHA-256 over session id, label and "chain"; cn that of cn-1 and the payload', () => {
    const c0 = startChain(SESSION, STREAM);
    const c1 = extendChain(c0, encodeText(PROGRESS));
    const c2 = extendChain(c1, encodeText(RESULT));
    expect([c0, c1, c2].map(hex)).toEqual(['6a64bb1684d00bb0', 'd45e36ca4750e1b7', 'e53269e2a55b202e']);
  });

  it('[ID-CHAIN] a payload above any buffer of fixed size is hashed whole, and earlier chains keep their bytes', () => {
    const c0 = startChain(SESSION, STREAM);
    for (const length of [0, 1, 4087, 4088, 4089, 100_000]) {
      const payload = new Uint8Array(length).fill(7);
      const expected = createHash('sha256').update(c0).update(payload).digest('hex').slice(0, 16);
      expect(hex(extendChain(c0, payload)), `${length} bytes`).toBe(expected);
    }
    expect(hex(c0)).toBe('6a64bb1684d00bb0');
  });

  it('[ID-CHAIN] chains and tags own their bytes and share no memory with one another', () => {
    for (const part of [
      startChain(SESSION, STREAM),
      extendChain(bytes('00'), bytes('01')),
      streamTag(SESSION, STREAM),
    ]) {
      expect(part.constructor).toBe(Uint8Array);
      expect(part.buffer.byteLength).toBe(part.length);
    }
    const parsed = parseEventId(LITERAL);
    expect(parsed?.chain.buffer).not.toBe(parsed?.tag.buffer);
    expect(parsed?.chain.constructor).toBe(Uint8Array);
  });
});

describe('the text of an event id', () => {
  const id: EventId = {
    epoch: 'k7q2fabcde',
    partition: 17,
    offset: 104857600,
    stream: STREAM,
    requestId: 7,
    seq: 2,
    tag: bytes('680d56da'),
    crc: 0x6f13115e,
    chain: bytes('e53269e2a55b202e'),
  };

  it('[ID-FORM] is epoch, partition, offset, stream, seq and check, joined by dots', () => {
    expect(formatEventId(id)).toBe(LITERAL);
    expect(parseEventId(LITERAL)).toEqual(id);
  });

  it('[ID-FORM] built from a session, a stream and a record it is the literal one', () => {
    const chain = [PROGRESS, RESULT].map(encodeText).reduce(extendChain, startChain(SESSION, STREAM));
    const tag = streamTag(SESSION, STREAM);
    expect(formatEventId({ ...id, tag, crc: anchorChecksum(ANCHOR), chain })).toBe(LITERAL);
  });

  it.each([
    ['a string id of the request', { ...id, requestId: 'a_b-1' }, 'r99812~_a_b-1.2'],
    ['an unsafe id of the request, which is left out', { ...id, requestId: 'a.b' }, 'r99812.2'],
    ['an error of the gateway itself', { ...id, seq: 'end' as const }, 'r99812~7.end'],
    ['a standalone stream, whose request id is not written', { ...id, stream: standaloneStream(104) }, 's104.2'],
  ])('[ID-FORM] holds %s', (_, value, middle) => {
    expect(formatEventId(value)).toBe(`k7q2fabcde.17.104857600.${middle}.aA1W2m8TEV7lMmnipVsgLg`);
  });

  const check = 'aA1W2m8TEV7lMmnipVsgLg';
  it.each([
    ['', 'nothing'],
    ['42', 'a counter'],
    ['k7q2fabcde.17.104857600.r99812~7.2', 'no check'],
    [`${LITERAL}.`, 'a seventh field'],
    [` ${LITERAL}`, 'a leading space'],
    [`${LITERAL}\n`, 'a trailing newline'],
    [LITERAL.toUpperCase(), 'another case'],
    [`k7q2f.17.104857600.r99812~7.2.${check}`, 'a short epoch'],
    [`k7q2fabcd1.17.104857600.r99812~7.2.${check}`, 'an epoch outside base32'],
    [`k7q2fabcde.017.104857600.r99812~7.2.${check}`, 'a leading zero'],
    [`k7q2fabcde.-1.104857600.r99812~7.2.${check}`, 'a negative partition'],
    [`k7q2fabcde.2147483648.104857600.r99812~7.2.${check}`, 'a partition above 31 bits'],
    [`k7q2fabcde.17.9007199254740992.r99812~7.2.${check}`, 'an offset above 2^53 - 1'],
    [`k7q2fabcde.17.1e3.r99812~7.2.${check}`, 'an exponent'],
    [`k7q2fabcde.17.0x10.r99812~7.2.${check}`, 'a hexadecimal offset'],
    [`k7q2fabcde.17.١.r99812~7.2.${check}`, 'digits of another script'],
    [`k7q2fabcde.17.104857600.x99812.2.${check}`, 'an unknown kind of stream'],
    [`k7q2fabcde.17.104857600.r.2.${check}`, 'a stream without a place'],
    [`k7q2fabcde.17.104857600.r99812~.2.${check}`, 'an empty request id'],
    [`k7q2fabcde.17.104857600.r99812~_.2.${check}`, 'an empty string id'],
    [`k7q2fabcde.17.104857600.r99812~-0.2.${check}`, 'minus zero'],
    [`k7q2fabcde.17.104857600.r99812~1~2.2.${check}`, 'two request ids'],
    [`k7q2fabcde.17.104857600.s104~7.2.${check}`, 'a request id on a standalone stream'],
    [`k7q2fabcde.17.104857600.r99812~7.-1.${check}`, 'a negative seq'],
    [`k7q2fabcde.17.104857600.r99812~7.END.${check}`, 'another word for end'],
    [`k7q2fabcde.17.104857600.r99812~7..${check}`, 'an empty seq'],
    ['k7q2fabcde.17.104857600.r99812~7.2.aA1W2m8TEV7lMmnipVsgLh', 'spare bits in the check'],
    ['k7q2fabcde.17.104857600.r99812~7.2.aA1W2m8TEV7lMmnipVsgL', 'a short check'],
    ['k7q2fabcde.17.104857600.r99812~7.2.aA1W2m8TEV7lMmnipVsg==', 'padding'],
    ['k7q2fabcde.17.104857600.r99812~7.2.aA1W2m8TEV7lMmnipVsg+/', 'plain base64'],
    [LITERAL + 'A'.repeat(200), 'a very long text'],
  ])('[ID-TOTAL] %j is no event id: %s', (text) => {
    expect(parseEventId(text)).toBeNull();
  });
});

describe('parts', () => {
  it('[ID-EPOCH] an epoch is ten characters of base32, five bits from each random byte', () => {
    expect(makeEpoch(Uint8Array.of(0, 1, 25, 26, 31, 32, 57, 58, 63, 255))).toBe('abz27az277');
    expect(() => makeEpoch(new Uint8Array(9))).toThrow(TypeError);
    expect(['abcdefgh27', 'abcdefgh2', 'abcdefgh277', 'Abcdefgh27', 'abcdefgh18', 'abcdefgh27\n'].map(isEpoch)).toEqual(
      [true, false, false, false, false, false],
    );
  });

  it('[ID-CHECK] bytes are equal if length and every byte are', () => {
    expect(equalBytes(bytes('0102'), bytes('0102'))).toBe(true);
    expect(equalBytes(bytes(''), bytes(''))).toBe(true);
    expect(equalBytes(bytes('0102'), bytes('0103'))).toBe(false);
    expect(equalBytes(bytes('0102'), bytes('01'))).toBe(false);
    expect(equalBytes(bytes('01'), bytes('0100'))).toBe(false);
  });
});
