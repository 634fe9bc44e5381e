import { readFileSync } from 'node:fs';
import { METRIC_TABLE } from '@throughline/telemetry';
import { describe, expect, it } from 'vitest';
import { REFERENCE_PAGES } from './reference-pages.ts';

describe('docs/reference', () => {
  it.each(REFERENCE_PAGES.map((page) => [page.file.pathname.split('/').at(-1) ?? '', page] as const))(
    '[CLI-REFERENCE] %s is what the code says; if not, run: node infra/write-reference.ts',
    async (_name, page) => {
      expect(readFileSync(page.file, 'utf8')).toBe(await page.render());
    },
  );

  it('[CLI-METRICS] metrics.md names the metrics of the table and no others', () => {
    const text = readFileSync(new URL('../docs/reference/metrics.md', import.meta.url), 'utf8');
    const named = [...text.matchAll(/^\| `(throughline_\w+)`/gm)].map(([, name]) => name);
    expect(named.sort()).toEqual(Object.keys(METRIC_TABLE).sort());
  });
});
