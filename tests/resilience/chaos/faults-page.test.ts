import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { FAULTS } from '../faults/catalogue.ts';

const read = (file: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../${file}`, import.meta.url)), 'utf8');

/** Cells of each row of the tables that have this first column. */
function rowsUnder(text: string, title: string): string[] {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.replaceAll(/\s+/g, '').startsWith(`|${title}|runs|`));
  const end = lines.findIndex((line, index) => index > at && !line.startsWith('|'));
  return at < 0 ? [] : lines.slice(at, end).map((line) => line.replaceAll(/\s+/g, ' '));
}

it('[FLT-TABLE] the table that README quotes is in docs/reference/faults.md as it stands, with its date', () => {
  const page = read('docs/reference/faults.md');
  const readme = read('README.md');
  const quoted = rowsUnder(readme, 'fault').filter((row) => !/^\| -/.test(row));
  expect(quoted.length).toBeGreaterThan(5);
  const held = rowsUnder(page, 'fault');
  for (const row of quoted) expect(held).toContain(row);
  const date = /- Date: (?<date>\S+)/.exec(page)?.groups?.['date'] ?? 'no date';
  expect(readme).toContain(date);
});

it('[FLT-TABLE] each fault of the catalogue is in docs/reference/faults.md, by its name and with what it does', () => {
  const page = read('docs/reference/faults.md');
  for (const { name, does } of FAULTS) expect(page).toContain(`**${name}**: ${does}`);
});
