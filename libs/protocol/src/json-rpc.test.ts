import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classifyMessage, classifyText, errorResponse, findClientFault, isJsonRpcId } from './json-rpc.ts';

function kindOf(value: unknown): string {
  const classified = classifyMessage(value);
  return 'fault' in classified ? 'fault' : classified.kind;
}

describe('classifyMessage', () => {
  it.each([
    ['request', '{"jsonrpc":"2.0","id":1,"method":"ping"}'],
    ['request', '{"jsonrpc":"2.0","id":0,"method":"ping"}'],
    ['request', '{"jsonrpc":"2.0","id":-1,"method":"ping"}'],
    ['request', '{"jsonrpc":"2.0","id":"","method":"ping"}'],
    ['request', '{"jsonrpc":"2.0","id":"__proto__","method":"__proto__"}'],
    ['request', '{"jsonrpc":"2.0","id":9007199254740991,"method":"ping","params":{}}'],
    ['request', '{"jsonrpc":"2.0","id":1,"method":"ping","extra":[1]}'],
    ['request', '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"params":{"method":1,"id":{}}}}'],
    ['request', '{"jsonrpc":"2.0","id":1,"method":"ping","error":null}'],
    ['request', '{"jsonrpc":"2.0","id":1,"method":"ping","__proto__":{"id":2}}'],
    ['notification', '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
    ['notification', '{"jsonrpc":"2.0","method":"x","params":{"id":1}}'],
    ['notification', '{"jsonrpc":"2.0","method":"x","__proto__":{"id":2}}'],
    ['response', '{"jsonrpc":"2.0","id":1,"result":{}}'],
    ['response', '{"jsonrpc":"2.0","id":1,"result":null}'],
    ['response', '{"jsonrpc":"2.0","id":1,"result":false}'],
    ['response', '{"jsonrpc":"2.0","id":1,"result":{},"error":null}'],
    ['response', '{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"no"}}'],
    ['response', '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}'],
    ['fault', 'null'],
    ['fault', 'true'],
    ['fault', '1'],
    ['fault', '"{}"'],
    ['fault', '[]'],
    ['fault', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]'],
    ['fault', '{}'],
    ['fault', '{"id":1,"method":"ping"}'],
    ['fault', '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
    ['fault', '{"jsonrpc":2.0,"id":1,"method":"ping"}'],
    ['fault', '{"jsonrpc":["2.0"],"id":1,"method":"ping"}'],
    ['fault', '{"JSONRPC":"2.0","id":1,"method":"ping"}'],
    ['fault', '{"__proto__":{"jsonrpc":"2.0","id":1,"method":"ping"}}'],
    ['fault', '{"jsonrpc":"2.0"}'],
    ['fault', '{"jsonrpc":"2.0","id":1}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"__proto__":{"result":1}}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"method":""}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"method":null}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"method":["ping"]}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"method":{}}'],
    ['fault', '{"jsonrpc":"2.0","id":null,"method":"ping"}'],
    ['fault', '{"jsonrpc":"2.0","id":true,"method":"ping"}'],
    ['fault', '{"jsonrpc":"2.0","id":{},"method":"ping"}'],
    ['fault', '{"jsonrpc":"2.0","id":[1],"method":"ping"}'],
    ['fault', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}'],
    ['fault', '{"jsonrpc":"2.0","id":1e999,"method":"ping"}'],
    ['fault', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"method":"ping","params":null}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}'],
    ['fault', '{"jsonrpc":"2.0","method":"ping","error":{"code":1,"message":"x"}}'],
    ['fault', '{"jsonrpc":"2.0","result":{}}'],
    ['fault', '{"jsonrpc":"2.0","id":null,"result":{}}'],
    ['fault', '{"jsonrpc":"2.0","id":{},"result":{}}'],
    ['fault', '{"jsonrpc":"2.0","id":true,"error":{"code":1,"message":"x"}}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"error":null}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"error":"no"}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"error":[]}'],
    ['fault', '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}'],
  ])('[REC-MESSAGE] %s: %s', (kind, json) => {
    expect(kindOf(JSON.parse(json))).toBe(kind);
  });

  const FAR = 'is beyond 2^53 − 1, so it cannot be kept exactly; use a string';
  const NEITHER = 'must be a string or an integer';
  it.each([
    ['9007199254740992', FAR],
    ['-9007199254740993', FAR],
    ['12345678901234567890', FAR],
    ['1e999', FAR],
    ['1.5', NEITHER],
    ['true', NEITHER],
    ['{}', NEITHER],
  ])('[REC-MESSAGE] an id or a token of %s %s', (value, fault) => {
    const json = `{"jsonrpc":"2.0","id":${value},"method":"ping"}`;
    expect(classifyMessage(JSON.parse(json))).toEqual({ fault: `field id ${fault}` });
    const answer = `{"jsonrpc":"2.0","id":${value},"result":{}}`;
    expect(classifyMessage(JSON.parse(answer))).toEqual({ fault: `field id ${fault}` });
    const call = classifyMessage(
      JSON.parse(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":${value}}}}`),
    );
    if ('fault' in call) throw new Error(call.fault);
    expect(findClientFault(call)).toBe(`field params._meta.progressToken ${fault}`);
  });

  it('[REC-MESSAGE] an undefined field counts as absent, as it does when the message is sent', () => {
    expect(kindOf({ jsonrpc: '2.0', id: undefined, method: 'x', params: undefined })).toBe('notification');
    expect(kindOf({ jsonrpc: '2.0', id: 1, method: undefined, result: {}, error: undefined })).toBe('response');
    expect(kindOf({ jsonrpc: '2.0', id: 1, result: undefined })).toBe('fault');
    expect(kindOf({ jsonrpc: '2.0', id: NaN, method: 'x' })).toBe('fault');
  });

  it('[REC-MESSAGE] what a prototype holds is no part of a message', () => {
    expect(kindOf(Object.create({ jsonrpc: '2.0', id: 1, method: 'ping' }))).toBe('fault');
    const withId: unknown = Object.assign(Object.create({ id: 1 }) as object, { jsonrpc: '2.0', method: 'x' });
    expect(kindOf(withId)).toBe('notification');
    const bare: unknown = Object.assign(Object.create(null) as object, { jsonrpc: '2.0', id: 1, method: 'x' });
    expect(kindOf(bare)).toBe('request');
  });

  it('[REC-MESSAGE] gives the message itself, unchanged', () => {
    const message = { jsonrpc: '2.0', id: 1, method: 'ping', extra: true };
    expect(classifyMessage(message)).toEqual({ kind: 'request', message });
    expect((classifyMessage(message) as { message: unknown }).message).toBe(message);
  });

  it('[REC-MESSAGE] any JSON value has a kind or a fault', () => {
    const field = fc.oneof(fc.jsonValue(), fc.constantFrom('2.0', 1, 'ping', undefined));
    const nearly = fc.record(
      {
        jsonrpc: fc.oneof(fc.constant('2.0'), field),
        id: field,
        method: field,
        params: field,
        result: field,
        error: field,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), nearly), (value) => {
        expect(['request', 'notification', 'response', 'fault']).toContain(kindOf(value));
      }),
      { numRuns: 3000 },
    );
  });
});

describe('parts', () => {
  it('[REC-MESSAGE] an id is a string or a safe integer', () => {
    expect(['', 'a', 0, -1, 2 ** 53 - 1].map(isJsonRpcId)).toEqual([true, true, true, true, true]);
    const others = [null, undefined, true, {}, [], [1], 1.5, NaN, Infinity, 2 ** 53, 1n, Symbol('id'), () => 1];
    expect(others.map(isJsonRpcId)).toEqual(others.map(() => false));
  });

  it('[REC-MESSAGE] a text is what its JSON is, and a fault if it is none', () => {
    expect(classifyText('{"jsonrpc":"2.0","id":1,"method":"ping"}')).toMatchObject({
      kind: 'request',
      message: { id: 1 },
    });
    for (const text of ['', '{', '{"jsonrpc":"2.0"', '\u0000'])
      expect(classifyText(text)).toEqual({ fault: 'the value is not JSON' });
    expect(classifyText('[]')).toEqual({ fault: 'a JSON-RPC message is an object' });
  });

  it('[REC-MESSAGE] an error response holds id and error and nothing else', () => {
    const error = { code: -32000, message: 'no', data: {} };
    expect(errorResponse(7, error)).toEqual({ jsonrpc: '2.0', id: 7, error });
    expect(errorResponse(null, error)).toEqual({ jsonrpc: '2.0', id: null, error });
  });
});
