/** From texts in layers to typed values. */
import type { Fault } from './faults.ts';
import type { Layer, RawValue } from './layers.ts';
import { OPTION_NAMES, optionRow } from './option-table.ts';
import type { OptionName, OPTIONS } from './option-table.ts';
import { parseValue } from './parse-value.ts';
import type { ValueOfKind } from './parse-value.ts';

/** Undefined: not set and without a default, or faulty. */
export type ResolvedOptions = {
  readonly [N in OptionName]: ValueOfKind[(typeof OPTIONS)[N]['kind']] | undefined;
};

/** The lowest layer. */
export function defaultLayer(): Layer {
  const layer = new Map<OptionName, RawValue>();
  for (const name of OPTION_NAMES) {
    const text = optionRow(name).default;
    if (text !== null) layer.set(name, { text, source: 'default', where: `--${name} (default)` });
  }
  return layer;
}

export function resolveOptions(layer: Layer, faults: Fault[]): ResolvedOptions {
  const values: Record<string, unknown> = {};
  for (const name of OPTION_NAMES) {
    const raw = layer.get(name);
    if (raw === undefined) continue;
    const row = optionRow(name);
    const parsed = parseValue(row.kind, raw.text, row);
    if (parsed.ok) values[name] = parsed.value;
    else faults.push({ where: describeValue(raw, row.isSecret === true), problem: `${parsed.problem}.` });
  }
  return values as ResolvedOptions;
}

/** The place and what stands there, unless it is a secret. */
export function describeValue(raw: RawValue, isSecret: boolean): string {
  return isSecret ? raw.where : `${raw.where} ${JSON.stringify(raw.text)}`;
}
