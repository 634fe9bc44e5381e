import { describe, expect, it } from 'vitest';
import { renderConfigPage, renderHelp } from './help.ts';
import { environmentName, OPTION_NAMES, optionRow } from './option-table.ts';

describe('renderHelp', () => {
  it('[CLI-REFERENCE] help names every option, variable, place in the file and default', () => {
    const help = renderHelp('1.2.3');
    const flat = help.replace(/\s+/g, ' ');
    for (const name of OPTION_NAMES) {
      const row = optionRow(name);
      if (row.isFlag !== false) expect(help).toContain(`\n  --${name}`);
      expect(help).toContain(environmentName(name));
      expect(flat).toContain(row.help);
      if (row.yaml !== null) expect(help).toContain(row.yaml);
      if (row.default !== null && row.kind !== 'switch') expect(flat).toContain(`Default: ${row.default}.`);
    }
    expect(help).toContain('throughline 1.2.3');
  });

  it('[CLI-REFERENCE] help names every command', () => {
    const help = renderHelp('1.2.3');
    for (const command of ['serve', 'gateway', 'worker', 'config check', 'config print', 'secret new', 'secret hash'])
      expect(help).toMatch(new RegExp(`^  ${command} {2,}\\S`, 'm'));
  });

  it('[CLI-REFERENCE] no line of help is wider than 120 characters', () => {
    for (const line of renderHelp('1.2.3').split('\n')) expect(line.length, line).toBeLessThanOrEqual(120);
  });

  it('[CLI-REFERENCE] the page names every option in a row of its own', () => {
    const page = renderConfigPage();
    for (const name of OPTION_NAMES) {
      const rows = page.split('\n').filter((line) => line.includes(`| \`${environmentName(name)}\` |`));
      expect(rows, name).toHaveLength(1);
    }
  });
});
