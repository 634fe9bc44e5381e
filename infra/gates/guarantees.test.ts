import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const idsIn = (text: string): string[] => [...new Set(text.match(/\bLIM-[A-Z-]+/g))].sort();

const PAGE = read('docs/reference/guarantees.md');

describe('docs/reference/guarantees.md', () => {
  it('[DOC-LIMITS] names every limit of SPEC.md, and no other', () => {
    const rules = [...read('SPEC.md').matchAll(/^\| (LIM-[A-Z-]+) /gm)].map(([, id = '']) => id);
    expect(rules.length).toBeGreaterThan(10);
    expect(idsIn(PAGE)).toEqual(rules.sort());
  });

  it('[DOC-LIMITS] names with each of them a file with a test that cites it', () => {
    const named = [...PAGE.matchAll(/(?<id>LIM-[A-Z-]+), `(?<file>[^`]+)`/g)];
    expect(named.map(({ groups }) => groups?.['id']).sort()).toEqual(idsIn(PAGE));
    for (const { groups } of named)
      expect(read(groups?.['file'] ?? ''), groups?.['id']).toContain(`[${groups?.['id']}]`);
  });
});
