import { describe, expect, it } from 'vitest';
import type { JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from '@throughline/protocol';
import { ReplayMemory } from './replay-memory.ts';

const ask = (id: string | number, text: string): JsonRpcRequest => ({
  jsonrpc: '2.0',
  id,
  method: 'elicitation/create',
  params: { message: text },
});
const log = (data: unknown): JsonRpcNotification => ({
  jsonrpc: '2.0',
  method: 'notifications/message',
  params: { level: 'info', data },
});
const cancelled = (requestId: string): JsonRpcNotification => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
});
const answer = (id: string, text: string): JsonRpcResponse => ({ jsonrpc: '2.0', id, result: { text } });
const SENT = { do: 'send' };
const DIVERGED = { do: 'diverged' };
const swallowed = (asked: string | null = null, given: JsonRpcResponse | null = null): object => ({
  do: 'swallow',
  asked,
  answer: given,
});

describe('the memory of a call that is run again', () => {
  it('[REQ-MEMORY] that is empty lets everything through', () => {
    const memory = new ReplayMemory([]);
    expect(memory.isOver()).toBe(true);
    expect([memory.hear(log('a')), memory.hear(ask(1, 'b'))]).toEqual([SENT, SENT]);
  });

  it('[REQ-MEMORY] swallows what was said, in its order, and lets through what comes after it', () => {
    const memory = new ReplayMemory([log('a'), ask('tl-9-1-n:0', 'b'), log('c')]);
    expect(memory.hear(log('a'))).toEqual(swallowed());
    expect(memory.hear(ask(7, 'b'))).toEqual(swallowed('tl-9-1-n:0'));
    expect(memory.isOver()).toBe(false);
    expect(memory.hear(log('c'))).toEqual(swallowed());
    expect(memory.isOver()).toBe(true);
    expect(memory.hear(log('c'))).toEqual(SENT);
  });

  it.each<[string, JsonRpcMessage, JsonRpcRequest | JsonRpcNotification]>([
    ['another text', log('a'), log('b')],
    ['another method', log('a'), { ...log('a'), method: 'notifications/progress' }],
    ['another type of value', log(1), log('1')],
    ['an item more', log([1]), log([1, 2])],
    ['items in another order', log([1, 2]), log([2, 1])],
    ['a field more', log({ a: 1 }), log({ a: 1, b: 2 })],
    ['a field less', log({ a: 1, b: 2 }), log({ a: 1 })],
    ['another field', log({ a: 1 }), log({ b: 1 })],
    ['a list for an object', log([]), log({})],
    ['null for an object', log({}), log(null)],
    ['no params', log('a'), { jsonrpc: '2.0', method: 'notifications/message' }],
    [
      'a notification for a request',
      ask('x', 'a'),
      { jsonrpc: '2.0', method: 'elicitation/create', params: { message: 'a' } },
    ],
    ['a request for a notification', log('a'), { ...log('a'), id: 1 }],
    ['anything where an answer stands', answer('x', 'a'), log('a')],
  ])('[REQ-MEMORY] takes for a difference: %s', (_what, said, message) => {
    const memory = new ReplayMemory([said]);
    expect(memory.expects(message)).toBe(false);
    expect(memory.hear(message)).toEqual(DIVERGED);
  });

  it('[REQ-MEMORY] takes no order of fields, and no id of a request, for a difference', () => {
    const memory = new ReplayMemory([log({ a: 1, b: { c: 2, d: 3 } }), ask('old', 'a')]);
    expect(memory.hear(log({ b: { d: 3, c: 2 }, a: 1 }))).toEqual(swallowed());
    expect(memory.hear(ask('new', 'a'))).toEqual(swallowed('old'));
  });

  it('[REQ-MEMORY] trusts nothing after a difference, not even what would have been right', () => {
    const memory = new ReplayMemory([log('a'), log('b')]);
    expect(memory.hear(log('b'))).toEqual(DIVERGED);
    expect([memory.hear(log('a')), memory.hear(log('c')), memory.isOver()]).toEqual([DIVERGED, DIVERGED, false]);
  });

  it('[REQ-MEMORY] is not over before the last message was repeated, so that a result that comes first is a difference', () => {
    const memory = new ReplayMemory([log('a'), ask('x', 'b')]);
    memory.hear(log('a'));
    expect(memory.isOver()).toBe(false);
    memory.hear(ask(1, 'b'));
    expect(memory.isOver()).toBe(true);
  });

  it('[REQ-FED] gives each answer to the question that it was given to, however late it was learned', () => {
    const memory = new ReplayMemory([ask('x', 'a'), ask('y', 'a')]);
    expect(memory.open()).toEqual(['x', 'y']);
    expect(memory.learn(answer('y', 'second'))).toBe(true);
    expect(memory.open()).toEqual(['x']);
    expect(memory.hear(ask(0, 'a'))).toEqual(swallowed('x'));
    expect(memory.hear(ask(1, 'a'))).toEqual(swallowed('y', answer('y', 'second')));
  });

  it('[REQ-FED] takes the first answer to a question, and none to what was not asked', () => {
    const memory = new ReplayMemory([ask('x', 'a')]);
    expect(memory.learn(answer('x', 'one'))).toBe(true);
    expect(memory.learn(answer('x', 'two'))).toBe(false);
    expect(memory.learn(answer('z', 'three'))).toBe(false);
    expect(memory.hear(ask(1, 'a'))).toEqual(swallowed('x', answer('x', 'one')));
  });

  it('[REQ-FED] gives no answer to a question that was withdrawn: the first run did not hear it', () => {
    const memory = new ReplayMemory([ask('x', 'a'), cancelled('x'), log('b')]);
    expect(memory.open()).toEqual([]);
    expect(memory.learn(answer('x', 'late'))).toBe(false);
    expect(memory.hear(ask(1, 'a'))).toEqual(swallowed('x'));
    expect(memory.hear(cancelled('x'))).toEqual(swallowed());
  });
});
