/** Tools that are killed at any instant and run again: what the client hears in all against what it would have heard. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from '@throughline/protocol';
import { ReplayMemory } from './replay-memory.ts';

type Said = JsonRpcRequest | JsonRpcNotification;
/** One step of a tool: it says something, or asks several things at once and waits for all answers. */
type Step = { readonly say: string } | { readonly ask: readonly string[] };

const text = fc.constantFrom('a', 'b', 'c');
const script = fc.array(
  fc.oneof(fc.record({ say: text }), fc.record({ ask: fc.array(text, { minLength: 1, maxLength: 3 }) })),
  { maxLength: 6 },
);

/** What the person answers: it depends on the question and on how many came before it. */
const answerTo = (count: number, question: string): string => `${question}${count}`;

/** A tool as a generator: yields what it says, is given the answers, returns its result. What it says depends on what it heard. */
function* tool(steps: readonly Step[], firstId: number): Generator<Said, string, readonly string[] | undefined> {
  let heard = '';
  let id = firstId;
  let count = 0;
  for (const step of steps) {
    if ('say' in step) {
      yield { jsonrpc: '2.0', method: 'notifications/message', params: { data: `${heard}|${step.say}` } };
      continue;
    }
    for (const question of step.ask) {
      count++;
      yield { jsonrpc: '2.0', id: id++, method: 'elicitation/create', params: { message: question, heard, count } };
    }
    const answers = yield* waitFor();
    heard += answers.join();
  }
  return heard;
}

/** The point at which a tool waits for the answers to all that it has asked. */
const WAIT: Said = { jsonrpc: '2.0', method: 'wait' };
function* waitFor(): Generator<Said, readonly string[], readonly string[] | undefined> {
  return (yield WAIT) ?? [];
}

type Outcome = { readonly text: string } | 'lost' | null;

interface Heard {
  readonly said: Said[];
  result: string | null;
}

/** Runs a tool to its end, or until it has said `limit` messages. `onSaid` tells what becomes of one: the answer if it is a question. */
function run(steps: readonly Step[], firstId: number, limit: number, onSaid: (said: Said) => Outcome): Heard {
  const heard: Heard = { said: [], result: null };
  const running = tool(steps, firstId);
  let given: string[] = [];
  let next = running.next();
  while (next.done !== true) {
    if (next.value === WAIT) {
      const answers = given;
      given = [];
      next = running.next(answers);
      continue;
    }
    if (heard.said.length >= limit) return heard;
    heard.said.push(next.value);
    const outcome = onSaid(next.value);
    if (outcome === 'lost') return heard;
    if (outcome !== null) given.push(outcome.text);
    next = running.next(undefined);
  }
  heard.result = next.value;
  return heard;
}

const questionOf = (said: Said): string => String(said.params?.['message']);
const countOf = (said: Said): number => Number(said.params?.['count']);
const withoutId = ({ method, params }: Said): unknown => ({ method, params });
const reply = (said: Said): { readonly text: string } | null =>
  'id' in said ? { text: answerTo(countOf(said), questionOf(said)) } : null;

/** The second run, with the memory of the first; `sent` is what the client hears of it. */
function runAgain(
  steps: readonly Step[],
  memory: ReplayMemory,
): { readonly sent: Said[]; readonly result: string | null } {
  const sent: Said[] = [];
  const { result } = run(steps, 100, Number.POSITIVE_INFINITY, (said) => {
    const heard = memory.hear(said);
    if (heard.do === 'diverged') return 'lost';
    if (heard.do === 'send') {
      sent.push(said);
      return reply(said);
    }
    if (!('id' in said)) return null;
    // An open question is answered later, under the id that the client knows: by the same person.
    return heard.answer === null ? reply(said) : (heard.answer.result as { text: string });
  });
  return { sent, result: memory.isOver() ? result : null };
}

/** The first run up to its death, as the log holds it. */
function firstRun(
  steps: readonly Step[],
  killedAfter: number,
): { readonly said: Said[]; readonly answers: JsonRpcResponse[] } {
  const { said } = run(steps, 1, killedAfter, reply);
  const answers = said.flatMap((each): JsonRpcResponse[] =>
    'id' in each ? [{ jsonrpc: '2.0', id: each.id, result: reply(each) }] : [],
  );
  return { said, answers };
}

describe('a tool that is run again with memory', () => {
  it('[REQ-MEMORY] [REQ-FED] and does the same tells the client what one undisturbed run would have, each once', () => {
    fc.assert(
      fc.property(script, fc.nat(20), fc.array(fc.boolean(), { maxLength: 20 }), (steps, killedAfter, isKnown) => {
        const whole = run(steps, 1, Number.POSITIVE_INFINITY, reply);
        const { said, answers } = firstRun(steps, killedAfter);
        const memory = new ReplayMemory(said);
        // Any of the answers may have come before the second run asks; the others come after it.
        for (const [index, answer] of answers.entries()) if (isKnown[index] !== false) memory.learn(answer);
        const { sent, result } = runAgain(steps, memory);
        expect([...said, ...sent].map(withoutId)).toEqual(whole.said.map(withoutId));
        expect(result).toBe(whole.result);
      }),
      { numRuns: 2000 },
    );
  });

  it('[REQ-MEMORY] and does something else tells the client nothing more, or goes on from all that it had heard', () => {
    fc.assert(
      fc.property(script, script, fc.nat(20), (steps, others, killedAfter) => {
        const { said, answers } = firstRun(steps, killedAfter);
        const memory = new ReplayMemory(said);
        for (const answer of answers) memory.learn(answer);
        const { sent, result } = runAgain(others, memory);
        const alone = run(others, 1, Number.POSITIVE_INFINITY, reply);
        const isRepeated = said.every(
          (each, index) => JSON.stringify(withoutId(each)) === JSON.stringify(withoutId(alone.said[index] ?? WAIT)),
        );
        if (isRepeated) {
          expect([...said, ...sent].map(withoutId)).toEqual(alone.said.map(withoutId));
          expect(result).toBe(alone.result);
        } else expect([sent, result]).toEqual([[], null]);
      }),
      { numRuns: 2000 },
    );
  });
});
