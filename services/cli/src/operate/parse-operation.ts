/** From the words and options of a command line to what an operator's command is asked for. */
import { hasOnePartition, parseOffset, TOPICS } from '@throughline/protocol';
import type { SessionId } from '@throughline/protocol';
import type { Fault } from '../faults.ts';
import { decodeId } from './decode-id.ts';
import { refuseForeign } from '../command-options.ts';
import type { CommandOptionName } from '../command-options.ts';
import type { Inspected, Operation, OperationName } from './operations.ts';
import type { TailRequest } from './tail.ts';

/** Undefined: faults say why not. `words` are those behind the command's name. */
export function parseOperation(
  name: OperationName,
  words: readonly string[],
  options: ReadonlyMap<CommandOptionName, string>,
  faults: Fault[],
): Operation | undefined {
  const before = faults.length;
  refuseForeign(name, options, faults);
  for (const extra of words.slice(WORDS[name] ?? 0)) faults.push({ where: extra, problem: 'is one word too many.' });
  const operation = build(name, words, options, faults);
  return faults.length === before ? operation : undefined;
}

/** Words that a command takes behind its name. */
const WORDS: Partial<Record<OperationName, number>> = { inspect: 1 };

const MAX_REASON = 500;

function build(
  name: OperationName,
  words: readonly string[],
  options: ReadonlyMap<CommandOptionName, string>,
  faults: Fault[],
): Operation | undefined {
  const json = options.has('json');
  switch (name) {
    case 'topics apply':
      return { kind: 'topics', action: 'apply', json };
    case 'topics show':
      return { kind: 'topics', action: 'show', json };
    case 'topics diff':
      return { kind: 'topics', action: 'diff', json };
    case 'doctor':
      return { kind: 'doctor', json };
    case 'inspect': {
      const inspected = parseInspected(words[0], options, faults);
      return inspected === undefined ? undefined : { kind: 'inspect', inspected };
    }
    case 'tail':
      return { kind: 'tail', request: parseTail(options, faults) };
    case 'owners':
      return { kind: 'owners', json };
    case 'epoch show':
      return { kind: 'epoch-show', json };
    case 'epoch rotate': {
      const reason = options.get('reason')?.trim() ?? '';
      if (reason === '')
        faults.push({
          where: '--reason',
          problem: 'is needed: why the history is given up, for whoever reads it later.',
        });
      if (reason.length > MAX_REASON)
        faults.push({ where: '--reason', problem: `has more than ${MAX_REASON} characters.` });
      return { kind: 'epoch-rotate', reason, isConfirmed: options.has('yes'), json };
    }
  }
}

function parseTail(options: ReadonlyMap<CommandOptionName, string>, faults: Fault[]): TailRequest {
  const number = (name: 'partition' | 'count', least: number): number | null => {
    const text = options.get(name);
    const value = text === undefined ? null : parseOffset(text);
    if (text !== undefined && (value === null || value < least))
      faults.push({ where: `--${name} ${JSON.stringify(text)}`, problem: `must be a whole number from ${least} on.` });
    return value;
  };
  const topicText = options.get('topic') ?? 'events';
  const topic = TOPICS.find((each) => each === topicText);
  if (topic === undefined)
    faults.push({ where: `--topic ${JSON.stringify(topicText)}`, problem: `must be one of ${TOPICS.join(', ')}.` });
  const fromText = options.get('from') ?? 'end';
  const from = fromText === 'start' || fromText === 'end' ? fromText : parseOffset(fromText);
  if (from === null)
    faults.push({ where: `--from ${JSON.stringify(fromText)}`, problem: 'must be start, end or an offset.' });
  const session = parseSession(options, faults);
  const partition = number('partition', 0);
  const isSingle = topic !== undefined && hasOnePartition(topic);
  if (typeof from === 'number' && partition === null && session === null && !isSingle)
    faults.push({ where: '--from', problem: 'an offset is one of a partition; name it with --partition.' });
  return {
    topic: topic ?? 'events',
    partition,
    session: session?.id ?? null,
    from: from ?? 'end',
    count: number('count', 1),
    once: options.has('once'),
    payload: options.has('payload'),
    json: options.has('json'),
  };
}

function parseSession(
  options: ReadonlyMap<CommandOptionName, string>,
  faults: Fault[],
): { readonly text: string; readonly id: SessionId } | null {
  const text = options.get('session');
  if (text === undefined) return null;
  const decoded = decodeId(text);
  if (decoded.kind === 'session') return { text, id: decoded.id };
  const why = decoded.kind === 'event' ? 'it is an event id' : decoded.problem;
  faults.push({ where: '--session', problem: `is no session id: ${why}.` });
  return null;
}

function parseInspected(
  text: string | undefined,
  options: ReadonlyMap<CommandOptionName, string>,
  faults: Fault[],
): Inspected | undefined {
  if (text === undefined) {
    faults.push({
      where: 'inspect',
      problem: 'needs an event id (of an SSE `id:` line) or a session id (Mcp-Session-Id).',
    });
    return undefined;
  }
  const decoded = decodeId(text);
  if (decoded.kind === 'malformed') {
    faults.push({
      where: JSON.stringify(text.slice(0, 200)),
      problem: `is neither an event id nor a session id: ${decoded.problem}.`,
    });
    return undefined;
  }
  return {
    text,
    decoded,
    session: parseSession(options, faults),
    payload: options.has('payload'),
    json: options.has('json'),
  };
}
