import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const fileOf = (file: string): URL => new URL(`../../${file}`, import.meta.url);
const read = (file: string): string => readFileSync(fileOf(file), 'utf8');

/** What MCP asks, as it is numbered for this project; each is kept, or it is said why not. */
const ASKED = [
  ...['P1', 'P2', 'P3', 'P4', 'P5', 'P6'],
  ...['G1', 'G2', 'G3', 'M1', 'R1', 'R2', 'R3'],
  ...['S1', 'S2', 'S3', 'S4', 'S5', 'S6', 'L1', 'L2', 'L3', 'L4'],
  ...['B1', 'B2', 'V1', 'V2', 'V3'],
  ...['E1', 'E2', 'E3', 'E4', 'E5', 'E6', 'E7', 'E8', 'E9', 'E10'],
  'C',
];

interface Row {
  readonly rule: string;
  readonly revisions: string;
  readonly cells: readonly string[];
}

function rowsOf(section: string): Row[] {
  return section
    .split('\n')
    .filter((line) => line.startsWith('| MCP-'))
    .map((line) => {
      const cells = line.split('|').slice(1, -1);
      const [rule = '', revisions = '', ...rest] = cells.map((cell) => cell.trim());
      return { rule, revisions, cells: rest };
    });
}

const [, kept = '', notKept = ''] = read('docs/reference/mcp-rules.md').split(/^## .+$/m);
const KEPT = rowsOf(kept);
const NOT_KEPT = rowsOf(notKept);

describe('docs/reference/mcp-rules.md', () => {
  it('[DOC-MCP] names every rule of MCP in SPEC.md with its revisions, and no other', () => {
    const rules = [...read('SPEC.md').matchAll(/^\| (?<rule>MCP-[A-Z0-9]+) +\| \((?<revisions>[^)]+)\) /gm)];
    expect(KEPT.map(({ rule, revisions }) => [rule, revisions])).toEqual(
      rules.map(({ groups }) => [groups?.['rule'], groups?.['revisions']]),
    );
  });

  it('[DOC-MCP] names with each of them files with tests that cite it, all of them', () => {
    for (const { rule, cells } of KEPT) {
      const [force, says, shown = ''] = cells;
      expect([force, says], rule).not.toContain('');
      const files = [...shown.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file);
      expect(files.length, rule).toBeGreaterThan(0);
      for (const file of files) expect(read(file), `${rule} in ${file}`).toContain(`[${rule}]`);
    }
  });

  it('[DOC-MCP] everything that MCP asks is kept, or stands there with a reason', () => {
    const told = new Set([...KEPT, ...NOT_KEPT].map(({ rule }) => rule));
    expect(ASKED.filter((rule) => !told.has(`MCP-${rule}`))).toEqual([]);
    for (const { rule, cells } of NOT_KEPT) {
      const [force, says, why = ''] = cells;
      expect([force, says], rule).not.toContain('');
      expect(why.length, rule).toBeGreaterThan(10);
      for (const [, link = ''] of why.matchAll(/\]\(\.\.\/([^)#]+)/g))
        expect(existsSync(fileOf(`docs/${link}`)), link).toBe(true);
    }
  });
});
