/** How an option is written where it is explained. */
import { OPTION_NAMES, optionRow } from './option-table.ts';
import type { OPTION_GROUPS, OptionName, OptionRow } from './option-table.ts';

export function namesOfGroup(group: (typeof OPTION_GROUPS)[number]): OptionName[] {
  return OPTION_NAMES.filter((name) => optionRow(name).group === group);
}

export function formatFlag(name: OptionName, row: OptionRow): string {
  return row.placeholder === undefined ? `--${name}` : `--${name} <${row.placeholder}>`;
}

export function formatRoles(row: OptionRow): string {
  return row.roles === undefined
    ? ''
    : ` (${row.roles.map((user) => (user === 'operate' ? "operator's commands" : user)).join(', ')})`;
}
