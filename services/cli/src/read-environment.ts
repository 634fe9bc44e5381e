/** The environment as a layer. An empty variable counts as not set, so that compose files can pass on what is unset. */
import type { Fault } from './faults.ts';
import type { Layer, RawValue } from './layers.ts';
import { didYouMean } from './nearest-name.ts';
import { CONFIG_FILE_OPTION, environmentName, OPTION_NAMES } from './option-table.ts';
import type { OptionName } from './option-table.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = 'THROUGHLINE_';

export interface EnvironmentLayer {
  readonly layer: Layer;
  readonly configFile: string | undefined;
  readonly faults: readonly Fault[];
}

export function readEnvironment(environment: Environment): EnvironmentLayer {
  const names = new Map(OPTION_NAMES.map((name) => [environmentName(name), name]));
  const configName = environmentName(CONFIG_FILE_OPTION.name);
  const layer = new Map<OptionName, RawValue>();
  const faults: Fault[] = [];
  let configFile: string | undefined;
  for (const [variable, text] of Object.entries(environment)) {
    if (!variable.startsWith(PREFIX) || text === undefined || text === '') continue;
    const name = names.get(variable);
    if (name !== undefined) layer.set(name, { text, source: 'environment', where: variable });
    else if (variable === configName) configFile = text;
    else {
      const meant = didYouMean(variable, [...names.keys(), configName]);
      faults.push({ where: variable, problem: `no such variable; unset it.${meant}` });
    }
  }
  return { layer, configFile, faults };
}
