/** What SECURITY.md and docs/operations/privacy.md claim is shown somewhere: by a rule with its test, or in a file. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { TOPICS } from '@throughline/protocol';

const ROOT = path.resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
const RULES = new Set(
  [...read('SPEC.md').matchAll(/^\| (?<id>[A-Z][A-Z0-9-]+-[A-Z0-9-]+) +\|/gm)].map(([, id = '']) => id),
);
const OPTIONS = new Set(
  [...`${read('docs/reference/config.md')}${read('docs/reference/commands.md')}`.matchAll(/--[a-z][a-z-]+/g)].map(
    ([option]) => option,
  ),
);
/** Of `throughline connect`, which has a page of its own. */
const CONNECT_OPTIONS = new Set(
  [...read('docs/guides/connect.md').matchAll(/--[a-z][a-z-]+/g)].map(([option]) => option),
);

const RULE = /\b(?:[A-Z]{2,}-)(?:[A-Z0-9]+-)*[A-Z0-9]{2,}\b/g;
/** They look like rules. */
const NO_RULES = new Set(['UTF-8', 'JSON-RPC']);

const rulesIn = (text: string): string[] => (text.match(RULE) ?? []).filter((id) => !NO_RULES.has(id));
/** The rows of all tables of a page whose last column says what shows them. */
const rowsOf = (page: string): string[][] =>
  page
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[ -]+\|/.test(line.replaceAll(' | ', '|').replaceAll('-|-', '-')))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

describe.each(['SECURITY.md', 'docs/operations/privacy.md'])('%s', (file) => {
  const page = read(file);

  it('[DOC-SECURITY] names rules that exist', () => {
    expect(rulesIn(page).length).toBeGreaterThan(10);
    expect(rulesIn(page).filter((id) => !RULES.has(id))).toEqual([]);
  });

  it('[DOC-SECURITY] names options that exist', () => {
    const named = [...page.matchAll(/`(?<option>--[a-z][a-z-]+)/g)].map(([, option = '']) => option);
    expect(named.filter((option) => !OPTIONS.has(option) && !CONNECT_OPTIONS.has(option))).toEqual([]);
  });

  it('[DOC-SECURITY] names and links files that exist', () => {
    const links = [...page.matchAll(/\]\((?<target>[^)#]+)/g)].map(([, target = '']) =>
      path.join(path.dirname(file), target),
    );
    const files = [...page.matchAll(/`(?<file>(?:libs|services|tests|infra|docs)\/[\w./-]+)`/g)].map(
      ([, name = '']) => name,
    );
    expect(links.length + files.length).toBeGreaterThan(3);
    expect([...links, ...files].filter((name) => !existsSync(path.join(ROOT, name)))).toEqual([]);
  });
});

describe('SECURITY.md', () => {
  const page = read('SECURITY.md');

  it('[DOC-SECURITY] shows by a rule each thing that it says to hold', () => {
    const holds = /^## What holds\n(?<text>.*?)^## /ms.exec(page)?.groups?.['text'] ?? '';
    const claims = holds.split('\n').filter((line) => line.startsWith('- '));
    expect(claims.length).toBeGreaterThan(8);
    expect(claims.filter((claim) => rulesIn(claim).length === 0)).toEqual([]);
  });

  it('[DOC-SECURITY] shows by a rule each bound', () => {
    const bounds = rowsOf(
      /^## What one client can take from another\n(?<text>.*)/ms.exec(page)?.groups?.['text'] ?? '',
    ).slice(1);
    expect(bounds.length).toBeGreaterThan(10);
    expect(bounds.filter((row) => rulesIn(row.at(-1) ?? '').length === 0)).toEqual([]);
  });
});

describe('docs/operations/privacy.md', () => {
  const page = read('docs/operations/privacy.md');

  it('[DOC-SECURITY] has all topics, and no other', () => {
    const named = [...page.matchAll(/^\| `(?<topic>[a-z-]+)` +\|/gm)].map(([, topic = '']) => topic);
    expect(named).toEqual([...TOPICS]);
  });

  it('[DOC-SECURITY] shows each row of its tables by a rule or a file', () => {
    const rows = rowsOf(page).filter((row) => row.at(-1) !== 'shown by');
    expect(rows.length).toBeGreaterThan(15);
    expect(rows.filter((row) => rulesIn(row.at(-1) ?? '').length === 0 && !(row.at(-1) ?? '').includes('`'))).toEqual(
      [],
    );
  });
});
