import { decodeText, encodeText } from '@throughline/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RefusedError } from './answer-error.ts';
import type { Refusal } from './answer-error.ts';
import { idOf, parseClientBody, requestIdsOf } from './client-body.ts';

const parse = (text: string) => parseClientBody(encodeText(text));
const refusalOf = (text: string | Uint8Array): Refusal => {
  try {
    parseClientBody(typeof text === 'string' ? encodeText(text) : text);
  } catch (error) {
    if (error instanceof RefusedError) return error.refusal;
    throw error;
  }
  throw new Error('it was taken');
};
const textsOf = (text: string): string[] => parse(text).texts.map(decodeText);

describe('bodies', () => {
  it.each(['', ' ', '{', '[1,', 'nonsense', '\uFEFF{}', '{"jsonrpc":"2.0","method":"m"}x'])(
    '[GW-BODY] %j is not JSON',
    (text) => {
      expect(refusalOf(text)).toMatchObject({ code: 'MALFORMED_JSON' });
    },
  );

  it.each([
    '1',
    'null',
    '"x"',
    '{}',
    '{"jsonrpc":"1.0","id":1,"method":"m"}',
    '{"jsonrpc":"2.0","id":null,"method":"m"}',
  ])('[GW-BODY] %j is no JSON-RPC message', (text) => {
    expect(refusalOf(text)).toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('[GW-BODY] bytes that are no UTF-8 are refused, not altered', () => {
    const body = Uint8Array.from([
      ...encodeText('{"jsonrpc":"2.0","method":"m","params":{"a":"'),
      0xff,
      0xc0,
      ...encodeText('"}}'),
    ]);
    expect(refusalOf(new Uint8Array([0xff, 0xfe]))).toMatchObject({ code: 'MALFORMED_JSON' });
    expect(() => parseClientBody(body)).toThrow(
      expect.objectContaining({ refusal: expect.objectContaining({ code: 'MALFORMED_JSON' }) }),
    );
  });

  it.each([
    ['{"jsonrpc":"2.0","id":9,"method":"ping","foo":1}', 'field "foo"'],
    ['{"jsonrpc":"2.0","id":9,"method":"ping","__proto__":{"a":1}}', 'field "__proto__"'],
    ['{"jsonrpc":"2.0","id":9,"method":"ping","params":{"_meta":5}}', '_meta must be an object'],
    ['{"jsonrpc":"2.0","id":9,"method":"ping","params":{"_meta":{"progressToken":{}}}}', 'progressToken must be'],
  ])('[GW-BODY] %s, which servers drop without an answer, is refused with the field', (text, field) => {
    const refusal = refusalOf(text);
    expect(refusal).toMatchObject({ code: 'INVALID_REQUEST', id: 9 });
    expect(refusal.message).toContain(field);
  });

  it('[GW-BODY] a response with an unknown field is refused, one with all of its own is taken', () => {
    expect(refusalOf('{"jsonrpc":"2.0","id":1,"result":{},"foo":1}').code).toBe('INVALID_REQUEST');
    expect(parse('{"jsonrpc":"2.0","id":1,"result":{"_meta":{}}}').messages).toHaveLength(1);
  });

  it('[GW-BATCH] a batch is neither empty nor above 100 messages, and each must be one', () => {
    const one = '{"jsonrpc":"2.0","method":"m"}';
    expect(refusalOf('[]')).toMatchObject({ code: 'INVALID_REQUEST' });
    expect(parse(`[${Array<string>(100).fill(one).join()}]`).messages).toHaveLength(100);
    expect(refusalOf(`[${Array<string>(101).fill(one).join()}]`)).toMatchObject({ code: 'INVALID_REQUEST' });
    expect(refusalOf(`[${one},[${one}]]`).message).toContain('Message 1');
  });

  it('[GW-POST] the text of a message stays as it came, except that line ends become spaces', () => {
    expect(textsOf('{"jsonrpc":"2.0",\r\n "id":1,\n"method":"m","params":{"n":12345678901234567890,"x":1.0}}')).toEqual(
      ['{"jsonrpc":"2.0",   "id":1, "method":"m","params":{"n":12345678901234567890,"x":1.0}}'],
    );
  });

  it('[GW-BATCH] each message of a batch stays as it came', () => {
    const a = '{"jsonrpc":"2.0","id":"],[","method":"m","params":{"n":1e400,"s":"\\"}\\\\"}}';
    const b = '{"jsonrpc":"2.0","method":"n","params":{"deep":[[{"a":[1,2]}],","]}}';
    expect(textsOf(`\t[ ${a} ,\n${b}\t]\n`)).toEqual([a, b]);
  });

  it('[GW-BATCH] cutting a batch is the same as writing each of its messages', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { minLength: 1, maxLength: 5 }), fc.nat(3), (values, indent) => {
        const messages = values.map((value) => ({ jsonrpc: '2.0', method: 'm', params: { value } }));
        const texts = textsOf(JSON.stringify(messages, null, indent));
        expect(texts.map((text) => JSON.parse(text) as unknown)).toEqual(JSON.parse(JSON.stringify(messages)));
        expect(texts.every((text) => !/[\r\n]/.test(text))).toBe(true);
      }),
    );
  });

  it.each(['[', '{"a":'])(
    '[GW-DEPTH] %s in each other: 512 levels are taken, one more is refused, a million soon',
    (open) => {
      const close = open === '[' ? ']' : '}';
      // The message and its params are two of them.
      const nested = (levels: number): string =>
        `{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":${open.repeat(levels - 2)}1${close.repeat(levels - 2)}}}`;
      expect(parse(nested(512)).messages).toHaveLength(1);
      const refusal = { code: 'INVALID_REQUEST', message: 'The body is nested deeper than 512 levels' };
      expect(refusalOf(nested(513))).toMatchObject(refusal);
      expect(refusalOf(nested(1_000_000))).toMatchObject(refusal);
    },
  );

  it('[GW-DEPTH] brackets in texts, and many next to each other, are no depth', () => {
    const text = JSON.stringify({
      jsonrpc: '2.0',
      method: 'm',
      params: { x: '[{\\"['.repeat(1000) + '\\', y: Array(2000).fill([{}]) },
    });
    expect(parse(text).messages).toHaveLength(1);
  });

  const withParams = (params: string): string => `{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":${params}}}`;
  const array = (count: number, item: string): string => `[${Array<string>(count).fill(item).join()}]`;
  const named = (count: number): string => `{${Array.from({ length: count }, (_, n) => `"k${n}":1`).join()}}`;
  // The message is an object with four names, its params one with one, and the outermost array or object is one more.
  const [held, one] = [100_000 - 8, 1];
  it.each<[string, (count: number) => string, number]>([
    ['names', named, held],
    ['objects', (count) => array(count, '{}'), held],
    ['arrays', (count) => array(count, '[]'), held],
    ['objects with a name each', (count) => array(count, '{"a":[1,2,3]}'), Math.floor(held / 3)],
  ])('[GW-DENSE] of %s as many are taken as are 100,000 parts, and one more is refused', (_, make, most) => {
    expect(parse(withParams(make(most))).messages).toHaveLength(1);
    const refusal = refusalOf(withParams(make(most + one)));
    expect(refusal).toMatchObject({ code: 'INVALID_REQUEST' });
    expect(refusal.message).toContain('more than 100000 names, arrays and objects');
  });

  it('[GW-DENSE] a batch is counted as a whole', () => {
    const message = withParams(named(10_000));
    expect(parse(array(9, message)).messages).toHaveLength(9);
    expect(refusalOf(array(10, message)).message).toContain('more than 100000 names');
  });

  it.each<[string, string]>([
    ['numbers, as embeddings are', '-0.0123456789'],
    ['texts', '"text"'],
    ['a text of brackets and colons', `"${'{[:'.repeat(20)}"`],
  ])('[GW-DENSE] an array of %s is bounded by its bytes alone', (_, item) => {
    const bytes = 4 * 1024 * 1024 - 1000;
    expect(parse(withParams(array(Math.floor(bytes / (item.length + 1)), item))).messages).toHaveLength(1);
  });

  const deep = '['.repeat(520);
  const twice = '{"jsonrpc":"2.0","method":"m","params":{"a":1,"a":2}}';
  it.each<[string, string, Uint8Array | string]>([
    ['nested deeper than 512 levels', 'is nested too deep, whatever else it is', `{"a":1,"a":2}}}nonsense${deep}`],
    ['more than 100000 names', 'is too dense, whatever else it is', `{"a":1,"a":2}}}nonsense${'{}'.repeat(100_001)}`],
    ['nested deeper than 512 levels', 'is too deep before it is too dense', `${deep}${'{}'.repeat(100_001)}`],
    ['not JSON in UTF-8', 'is no JSON, before a name that stands twice in it', `${twice}x`],
    ['not JSON in UTF-8', 'is no JSON, after brackets that close nothing', `]}}{"a":1,"a":2}`],
    ['not JSON in UTF-8', 'is no UTF-8', Uint8Array.from([...encodeText(twice.slice(0, -2)), 0xff, 0x7d, 0x7d])],
    ['A field stands twice', 'has a name twice, before it is no message', '{"a":1,"a":2}'],
    ['A field stands twice', 'has a name twice, before there are too many', `[${Array(101).fill(twice).join()}]`],
    ['A field stands twice', 'has a name twice in one of a batch', `[{"jsonrpc":"2.0","method":"m"},${twice}]`],
    ['at most 100', 'has too many, before one of them is no message', `[${Array(101).fill('1').join()}]`],
  ])('[GW-BODY] [GW-DEPTH] [GW-DENSE] [GW-TWICE] the first fault is told (%s): a body %s', (fault, _, body) => {
    expect(refusalOf(body).message).toContain(fault);
  });

  it('[GW-TWICE] levels are counted from the message on, alone or in a batch', () => {
    const inArguments = '{"jsonrpc":"2.0","method":"m","params":{"arguments":{"a":1,"a":2}}}';
    const below = '{"jsonrpc":"2.0","method":"m","params":{"arguments":{"x":{"a":1,"a":2}}}}';
    for (const text of [inArguments, `[${inArguments}]`]) expect(refusalOf(text).message).toContain('stands twice');
    for (const text of [below, `[${below}]`]) expect(parse(text).messages).toHaveLength(1);
  });

  it('[GW-VERSION] a request of the era without sessions is told which revisions are served, in its own terms', () => {
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    const request = { jsonrpc: '2.0', id: 'a', method: 'tools/list', params: { _meta: meta } };
    expect(refusalOf(JSON.stringify(request))).toMatchObject({
      code: 'ERA_UNSUPPORTED',
      id: 'a',
      data: { supported: ['2025-03-26', '2025-06-18', '2025-11-25'], requested: '2026-07-28' },
    });
  });

  it('[GW-POST] an error answers the only request of a body; of several none', () => {
    const request = (id: number) => ({ jsonrpc: '2.0', id, method: 'm' });
    const note = { jsonrpc: '2.0', method: 'n' };
    expect(idOf(parse(JSON.stringify(request(7))))).toEqual({ id: 7 });
    expect(idOf(parse(JSON.stringify([note, request(7)])))).toEqual({ id: 7 });
    expect(idOf(parse(JSON.stringify([request(7), request(8)])))).toEqual({});
    expect(idOf(parse(JSON.stringify(note)))).toEqual({});
    expect(requestIdsOf(parse(JSON.stringify([note, request(7), note, request(8)])))).toEqual([
      [1, 7],
      [3, 8],
    ]);
  });
});
