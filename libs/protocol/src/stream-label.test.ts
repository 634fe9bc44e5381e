import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_PARTITION, parseOffset, parsePartition } from './position.ts';
import {
  formatJsonRpcId,
  formatStreamLabel,
  parseJsonRpcId,
  parseStreamLabel,
  requestStream,
  standaloneStream,
} from './stream-label.ts';

const offset = fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER));
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.stringMatching(/^[rs_-]?[0-9]{0,20}$/),
  fc.stringMatching(/^_[A-Za-z0-9_.-]{0,40}$/),
);

describe('stream labels', () => {
  it('[ID-STREAM] r<N> is the stream of the request at N, s<A> the one opened by the attachment at A', () => {
    expect(formatStreamLabel(requestStream(99812))).toBe('r99812');
    expect(formatStreamLabel(standaloneStream(0))).toBe('s0');
    expect(parseStreamLabel('r99812')).toEqual({ kind: 'request', at: 99812 });
    expect(parseStreamLabel('s0')).toEqual({ kind: 'standalone', at: 0 });
  });

  it('[ID-STREAM] every label is read back, and a label has one text only', () => {
    const label = fc.record({ kind: fc.constantFrom('request' as const, 'standalone' as const), at: offset });
    fc.assert(
      fc.property(label, (stream) => {
        expect(parseStreamLabel(formatStreamLabel(stream))).toEqual(stream);
      }),
    );
    fc.assert(
      fc.property(anyText, (text) => {
        const stream = parseStreamLabel(text);
        if (stream !== null) expect(formatStreamLabel(stream)).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });

  it.each(['', 'r', 's', 'R1', 'q1', 'r01', 'r-1', 'r+1', 'r1.0', 'r1e3', 'r 1', ' r1', 'r1 ', 'r1\n', 'rr1', 's1~7'])(
    '[ID-STREAM] %j is no label',
    (text) => {
      expect(parseStreamLabel(text)).toBeNull();
    },
  );
});

describe('JSON-RPC ids in cursors', () => {
  it.each([
    [0, '0'],
    [7, '7'],
    [-7, '-7'],
    [Number.MAX_SAFE_INTEGER, '9007199254740991'],
    [Number.MIN_SAFE_INTEGER, '-9007199254740991'],
    ['7', '_7'],
    ['a_b-C9', '_a_b-C9'],
    ['_', '__'],
    ['x'.repeat(31), `_${'x'.repeat(31)}`],
  ])('[ID-REQUEST] %j is written as %j', (id, text) => {
    expect(formatJsonRpcId(id)).toBe(text);
    expect(parseJsonRpcId(text)).toBe(id);
  });

  it.each([
    [undefined],
    [''],
    ['x'.repeat(32)],
    ['a b'],
    ['a.b'],
    ['a~b'],
    ['é'],
    ['a\n'],
    [1.5],
    [NaN],
    [Infinity],
    [-0],
    [2 ** 53],
  ])('[ID-REQUEST] %j is left out', (id) => {
    expect(formatJsonRpcId(id)).toBeNull();
  });

  it.each(['', '_', '-', '-0', '00', '07', '+7', '7.0', '1e3', '9007199254740992', 'a', `_${'x'.repeat(32)}`, '_a~'])(
    '[ID-REQUEST] %j is the text of no id',
    (text) => {
      expect(parseJsonRpcId(text)).toBeNull();
    },
  );

  it('[ID-REQUEST] at most 32 characters, read back with its type, one text an id', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.double(), fc.maxSafeInteger()), (id) => {
        const text = formatJsonRpcId(id);
        if (text === null) return;
        expect(text.length).toBeLessThanOrEqual(32);
        expect(parseJsonRpcId(text)).toBe(id);
      }),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(anyText, (text) => {
        const id = parseJsonRpcId(text);
        if (id !== null) expect(formatJsonRpcId(id)).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('positions', () => {
  it('[ID-FORM] an offset is a canonical decimal up to 2^53 - 1, a partition up to 2^31 - 1', () => {
    expect(MAX_PARTITION).toBe(2147483647);
    expect(['0', '9', '10', '9007199254740991'].map(parseOffset)).toEqual([0, 9, 10, 9007199254740991]);
    const refused = [
      '',
      '-0',
      '-1',
      '+1',
      '00',
      '01',
      '1.0',
      '1e1',
      ' 1',
      '1\n',
      '9007199254740992',
      '99999999999999999',
    ];
    expect(refused.map(parseOffset)).toEqual(refused.map(() => null));
    expect(['0', '2147483647', '2147483648', '01'].map(parsePartition)).toEqual([0, 2147483647, null, null]);
  });
});
