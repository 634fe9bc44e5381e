/** What was seen of a step, in words, and whether it is as it should be. Pure. */
import { connectionsOfCall, isExactOn, stepsOn } from './read-wire.ts';
import type { Outcome } from './trial.ts';
import type { WireAnswer } from './wire.ts';

export const STEPS = ['initialize', 'call', 'kill', 'drain', 'refusal', '404'] as const;
export type Step = (typeof STEPS)[number];

export interface Seen {
  readonly isRight: boolean;
  /** One line. */
  readonly text: string;
}

export interface CallSeen {
  /** Of the countdown. */
  readonly steps: number;
  readonly outcome: Outcome;
  /** As the client reported them; `null` if it asks for none. */
  readonly reported: readonly number[] | null;
  /** How many of them it reported when it had the result already. */
  readonly late: number;
  readonly answers: readonly WireAnswer[];
  /** Whether its connection must have been cut at least once. */
  readonly mustBeCut: boolean;
}

const MAX_TEXT = 140;

export function judgeCall({ steps, outcome, reported, late, answers, mustBeCut }: CallSeen): Seen {
  const connections = connectionsOfCall(answers);
  const came = stepsOn(connections);
  const expected = Array.from({ length: steps }, (_, index) => index + 1);
  const faults: string[] = [];
  if (outcome.kind !== 'result') faults.push(describeOutcome(outcome));
  else if (outcome.text !== `done ${steps}`) faults.push(`another result: ${shorten(outcome.text)}`);
  const again = came.length - steps;
  const isItsOwn = again > 0 && isExactOn(connections, steps);
  if (reported !== null && !isSame(came, expected) && !isItsOwn)
    faults.push(`${came.length} of ${steps} steps came, not each once and in order`);
  if (reported !== null && !isSame(reported, came))
    faults.push(`it reported ${reported.length} of ${came.length} steps`);
  const resumes = connections.length - 1;
  if (mustBeCut && resumes === 0) faults.push('its connection was never cut');
  if (faults.length > 0) return { isRight: false, text: faults.join('; ') };
  const over = mustBeCut ? `, ${resumes} ${resumes === 1 ? 'resume' : 'resumes'}` : '';
  const repeated = isItsOwn ? `; ${again} steps again, since it came back with an older cursor than its last` : '';
  const after = late === 0 ? '' : `, ${late} reported after the result`;
  const said = reported === null ? 'result (it asks for no progress)' : `${steps} of ${steps} steps, result`;
  return { isRight: true, text: `${said}${over}${after}${repeated}` };
}

export interface RefusalSeen {
  readonly outcome: Outcome;
  readonly answers: readonly WireAnswer[];
  /** Where the call on the same session came to that followed; `null` for a client whose session is over with its call. */
  readonly next: Outcome | null;
}

/** The call that is told that its cursor cannot be continued has to end, and to say so. */
export function judgeRefusal({ outcome, answers, next }: RefusalSeen): Seen {
  const refused = answers.findLast(({ lastEventId, items }) => lastEventId !== undefined && hasTerminalId(items));
  if (refused === undefined) return { isRight: false, text: `it never resumed: ${describeOutcome(outcome)}` };
  const then = next === null ? '' : `; next call: ${describeOutcome(next)}`;
  return { isRight: outcome.kind === 'error', text: `${describeOutcome(outcome)}${then}` };
}

export interface GoneSeen {
  readonly outcome: Outcome;
  /** Since the session ended. */
  readonly answers: readonly WireAnswer[];
  /** Of a session that the application began anew. */
  readonly again: Outcome;
}

/** A client whose session is gone fails the call, or begins a session by itself; a new one works. */
export function judgeGone({ outcome, answers, again }: GoneSeen): Seen {
  const hasSeen404 = answers.some(({ status }) => status === 404);
  const began = answers.some(({ method }) => method === 'initialize');
  const itself =
    began && outcome.kind === 'result' ? 'began a session by itself and called again' : describeOutcome(outcome);
  const anew = again.kind === 'result' ? 'a new session works' : `a new session does not: ${describeOutcome(again)}`;
  const isSettled = outcome.kind === 'error' || (began && outcome.kind === 'result');
  return {
    isRight: hasSeen404 && isSettled && again.kind === 'result',
    text: `${hasSeen404 ? '' : 'no 404 came; '}${itself}; ${anew}`,
  };
}

export function describeOutcome(outcome: Outcome): string {
  if (outcome.kind === 'nothing') return `nothing within ${(outcome.ms / 1000).toFixed(0)} s`;
  if (outcome.kind === 'result') return `answered: ${shorten(outcome.text)}`;
  return `fails: ${shorten(textOf(outcome.error))}`;
}

function textOf(error: unknown): string {
  const { message = String(error), code, data } = error as { message?: string; code?: unknown; data?: unknown };
  const { reason } = (typeof data === 'object' && data !== null ? data : {}) as { reason?: unknown };
  const about = [
    ...(typeof code === 'number' && !message.includes(String(code)) ? [String(code)] : []),
    ...(typeof reason === 'string' && !message.includes(reason) ? [`reason ${reason}`] : []),
  ];
  return about.length === 0 ? message : `${message} (${about.join(', ')})`;
}

/** One line that fits a table. */
function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').replaceAll('|', '/').trim();
  return line.length > MAX_TEXT ? `${line.slice(0, MAX_TEXT)}…` : line;
}

function hasTerminalId(items: WireAnswer['items']): boolean {
  return items.some(({ id }) => id !== undefined && id.includes('.end.'));
}

function isSame(one: readonly number[], two: readonly number[]): boolean {
  return one.length === two.length && one.every((value, index) => value === two[index]);
}
