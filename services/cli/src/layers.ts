/** The places where an option can be set. Flags over environment over file over defaults. */
import type { OptionName } from './option-table.ts';

export type Source = 'flag' | 'environment' | 'file' | 'default';

export interface RawValue {
  readonly text: string;
  readonly source: Source;
  /** How the user knows it: `--listen`, `THROUGHLINE_LISTEN`, `throughline.yaml: listen`. */
  readonly where: string;
}

export type Layer = ReadonlyMap<OptionName, RawValue>;

/** Options of which only one can be chosen: a choice in a higher layer replaces that of a lower one. */
const ALTERNATIVES: readonly (readonly OptionName[])[] = [
  ['stdio', 'module', 'upstream'],
  ['secrets', 'secrets-file'],
  ['auth-jwks-url', 'auth-keys-file'],
  ['kafka-password', 'kafka-password-file'],
];

/** Highest layer first. */
export function mergeLayers(layers: readonly Layer[]): Layer {
  const merged = new Map<OptionName, RawValue>();
  for (const layer of layers) {
    const settled = ALTERNATIVES.filter((group) => group.some((name) => merged.has(name))).flat();
    for (const [name, value] of layer) if (!merged.has(name) && !settled.includes(name)) merged.set(name, value);
  }
  return merged;
}
