/**
 * Splits a command line into words as a POSIX shell does: blanks separate, single quotes keep everything, double quotes
 * keep all but `\` before `"`, `\`, `$`, a backquote or a line end, `\` outside quotes keeps the next character. Nothing is
 * expanded and no shell is run: `$HOME`, `|` or `>` are plain text. SPEC: HOST-STDIO-WORDS.
 */
import { HostError } from './host.ts';

const ESCAPABLE_IN_DOUBLE_QUOTES = new Set(['"', '\\', '$', '`', '\n']);

/** Throws `HOST_CONFIG` on an open quote, on a `\` at the end, and if there is no word at all. */
export function splitCommandLine(line: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: '"' | "'" | undefined;
  for (let at = 0; at < line.length; at += 1) {
    const char = line.charAt(at);
    const next = line.charAt(at + 1);
    if (quote !== undefined) {
      if (char === quote) {
        quote = undefined;
      } else if (quote === '"' && char === '\\' && ESCAPABLE_IN_DOUBLE_QUOTES.has(next)) {
        at += 1;
        if (next !== '\n') word = (word ?? '') + next;
      } else {
        word = (word ?? '') + char;
      }
    } else if (char === '"' || char === "'") {
      quote = char;
      word ??= '';
    } else if (char === '\\') {
      if (next === '')
        throw new HostError('HOST_CONFIG', 'the command line ends in a lone backslash; write it as \\\\');
      at += 1;
      if (next !== '\n') word = (word ?? '') + next;
    } else if (char === ' ' || char === '\t' || char === '\n') {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? '') + char;
    }
  }
  if (quote !== undefined) {
    throw new HostError('HOST_CONFIG', `the command line has an opening ${quote} without its closing ${quote}`);
  }
  if (word !== undefined) words.push(word);
  if (words.length === 0) throw new HostError('HOST_CONFIG', 'the command line of the stdio server is empty');
  return words;
}
