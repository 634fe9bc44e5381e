/** A command of this product as advice: it does what is meant when it is pasted where this one ran. */
import { COMMANDS } from './command-table.ts';
import type { CommandName } from './command-table.ts';
import { optionRow } from './option-table.ts';
import type { Settings } from './settings.ts';

/**
 * With every option that is set for this command, wherever it was set, and that the other one takes too. Secrets stay
 * where they are, in the environment or the file that `--config` names. `own`: words and options that it alone has.
 */
export function suggestCommand(
  { layer, configFile }: Pick<Settings, 'layer' | 'configFile'>,
  name: CommandName,
  own: readonly string[] = [],
): string {
  const words = ['throughline', name, ...own.map(quote)];
  for (const option of COMMANDS[name].options) {
    const raw = layer.get(option);
    const { group, isFlag, isSecret, kind } = optionRow(option);
    if (raw === undefined || own.includes(`--${option}`)) continue;
    if (isFlag === false || isSecret === true || group === 'Output') continue;
    // Where the log is stands there in any case: by default it depends on the folder.
    if (raw.source === 'default' && option !== 'log') continue;
    if (kind === 'switch') words.push(raw.text === 'true' ? `--${option}` : `--no-${option}`);
    else words.push(`--${option}`, quote(raw.text));
  }
  if (configFile !== undefined) words.push('--config', quote(configFile));
  return words.join(' ');
}

/** For a POSIX shell. */
function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
