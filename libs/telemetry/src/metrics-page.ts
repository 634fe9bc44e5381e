/** docs/reference/metrics.md, made from the table. */
import { METRIC_TABLE } from './metric-table.ts';

export function renderMetricsPage(): string {
  const rows = Object.entries(METRIC_TABLE).map(([name, row]) => {
    const labels = row.labels.length === 0 ? '–' : row.labels.map((label) => `\`${label}\``).join(', ');
    return `| \`${name}\` | ${row.type} | ${labels} | ${row.help} |`;
  });
  return [
    '# Metrics',
    '',
    'Served as Prometheus text at `/metrics` on the admin address (`--admin`), together with the metrics of the process',
    'and of Node. Units are in the names. This page is made from `libs/telemetry/src/metric-table.ts`:',
    '`node infra/write-reference.ts` writes it, and a test fails when it has drifted.',
    '',
    '| metric | type | labels | meaning |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}
