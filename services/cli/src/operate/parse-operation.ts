/** From the words and options of a command line to what an operator's command is asked for. */
import type { Fault } from '../faults.ts';
import { decodeId } from './decode-id.ts';
import type { CommandOptionName, Inspected, Operation, OperationName } from './operations.ts';
import { commandOption } from './operations.ts';

/** Undefined: faults say why not. `words` are those behind the command's name. */
export function parseOperation(
  name: OperationName,
  words: readonly string[],
  options: ReadonlyMap<CommandOptionName, string>,
  faults: Fault[],
): Operation | undefined {
  const before = faults.length;
  for (const option of options.keys()) {
    const { commands } = commandOption(option);
    if (!commands.includes(name))
      faults.push({ where: `--${option}`, problem: `is an option of ${commands.join(', ')}, not of ${name}.` });
  }
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
    case 'inspect': {
      const inspected = parseInspected(words[0], options, faults);
      return inspected === undefined ? undefined : { kind: 'inspect', inspected };
    }
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
    default:
      return undefined;
  }
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
  const sessionText = options.get('session');
  const session = sessionText === undefined ? null : decodeId(sessionText);
  if (session !== null && session.kind !== 'session')
    faults.push({
      where: '--session',
      problem: `is no session id: ${session.kind === 'event' ? 'it is an event id' : session.problem}.`,
    });
  return {
    text,
    decoded,
    session: session?.kind === 'session' ? { text: sessionText ?? '', id: session.id } : null,
    json: options.has('json'),
  };
}
