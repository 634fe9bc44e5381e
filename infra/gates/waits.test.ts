import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { countWaits } from './waits.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
const NO_PRODUCT = /\.test\.ts$|\.d\.ts$|\/testing\/|\/conformance\/|^libs\/testkit\//;

/** The rows of the page: where, how many, what, longest, set by, heard. */
function rows(): string[][] {
  const page = readFileSync(`${ROOT}docs/reference/waits.md`, 'utf8');
  return page
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

describe('the page of waits', () => {
  it('[WAIT-TABLE] every wait of product code is on the page, with its longest time, what sets it, and what is heard then', () => {
    const found = new Map<string, number>();
    for (const file of globSync('{libs,services}/*/src/**/*.ts', { cwd: ROOT })) {
      if (NO_PRODUCT.test(file)) continue;
      const count = countWaits(file, readFileSync(`${ROOT}${file}`, 'utf8'));
      if (count > 0) found.set(file, count);
    }
    const told = new Map(rows().map(([where = '', count]) => [where.replaceAll('`', ''), Number(count)]));
    expect(Object.fromEntries([...told].sort())).toEqual(Object.fromEntries([...found].sort()));
    for (const row of rows()) {
      expect(row).toHaveLength(6);
      for (const cell of row) expect(cell, row[0]).not.toBe('');
    }
  });

  it.each([
    ['new Promise((resolve) => setTimeout(resolve, 1))', 1],
    ['const late = Promise.withResolvers<void>();', 1],
    ['async function f(s: AsyncIterable<number>) { for await (const x of s) use(x); }', 1],
    ['await fetch(url); await import("./x.ts");', 2],
    ['for (const x of list) await sleep(clock, x); await Promise.all([a, b]); Promise.resolve(1);', 0],
    ['import { x } from "./x.ts"; type P = Promise<string>;', 0],
  ])('[WAIT-TABLE] counts in %s: %d', (text, count) => {
    expect(countWaits('x.ts', text)).toBe(count);
  });
});
