/** A command line and an environment as settings, or the faults of them. */
import { COMMANDS } from '../command-table.ts';
import { ConfigError, faultText } from '../faults.ts';
import { loadSettings } from '../load-settings.ts';
import { parseArguments } from '../parse-arguments.ts';
import type { Environment } from '../read-environment.ts';
import type { Settings } from '../settings.ts';

export const DEMO_MODULE = '/demo.js';

/** `line`: words split at blanks, or the words. */
type Line = string | readonly string[];

const wordsOf = (line: Line): readonly string[] => (typeof line === 'string' ? line.split(' ') : line);

/** As its command reads them; without one that reads any, as `serve`. Throws {@link ConfigError}. */
export function loadLine(line: Line, environment: Environment, cwd: string): Settings {
  const given = parseArguments(wordsOf(line));
  const { user } = COMMANDS[given.asked ?? 'serve'];
  return loadSettings({ arguments: given, environment, cwd, demoModule: DEMO_MODULE }, user ?? 'serve');
}

/** Each as it is shown: `<where>: <problem>`. */
export function faultsOfLine(line: Line, environment: Environment, cwd: string): string[] {
  try {
    loadLine(line, environment, cwd);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(faultText);
    throw error;
  }
  return [];
}

/** Those of the line alone, whatever values its options have. */
export function faultsOfArguments(line: Line): string[] {
  return parseArguments(wordsOf(line)).faults.map(faultText);
}
