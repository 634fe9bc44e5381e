/** `--only <part>,<part>` of a lane: some of its parts. Pure. */
import { names } from '../options/option.ts';
import type { Option } from '../options/option.ts';

type Named = { readonly name: string };

export function partOptions(parts: readonly Named[]): { readonly only: Option<readonly string[]> } {
  const known = parts.map(({ name }) => name);
  return { only: names('<part>,…', 'some of the parts (default: all)', known) };
}

/** All parts if none is named; else those that are, in the order of the lane. */
export function chooseParts<T extends Named>(parts: readonly T[], only: readonly string[]): readonly T[] {
  return only.length === 0 ? parts : parts.filter(({ name }) => only.includes(name));
}
