/** `--only <part>,<part>` of a lane: some of its parts. */
import { parseArgs } from 'node:util';
import { errorText } from '@throughline/log';

/** All parts without `--only`. Throws, with the names there are, on what is no part or no option. */
export function chooseParts<T extends { readonly name: string }>(parts: readonly T[], args: readonly string[]): T[] {
  const known = parts.map(({ name }) => name);
  const help = `Parts: ${known.join(', ')}. Some of them: -- --only ${known.slice(0, 2).join(',')}`;
  let only: string | undefined;
  try {
    ({ only } = parseArgs({ args: [...args], options: { only: { type: 'string' } } }).values);
  } catch (error) {
    throw new RangeError(`${errorText(error)}\n${help}`, { cause: error });
  }
  if (only === undefined) return [...parts];
  const wanted = only.split(',');
  const unknown = wanted.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new RangeError(`There is no part ${unknown.map((name) => `"${name}"`).join(', ')}.\n${help}`);
  return parts.filter(({ name }) => wanted.includes(name));
}
