import { describe, expect, it } from 'vitest';
import { METRIC_TABLE } from './metric-table.ts';
import { createPrometheusMetrics } from './prometheus.ts';

describe('createPrometheusMetrics', () => {
  it('[CLI-METRICS] every metric of the table is exposed with its type and meaning', async () => {
    const text = await createPrometheusMetrics({ process: false }).render();
    const exposed = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);
    expect(exposed.sort()).toEqual(
      Object.entries(METRIC_TABLE)
        .map(([name, row]) => `${name} ${row.type}`)
        .sort(),
    );
  });

  it('[CLI-METRICS] counters add, gauges are set, histograms observe', async () => {
    const metrics = createPrometheusMetrics({ process: false });
    metrics.add('throughline_gateway_requests_total', 2, { method: 'POST', status: '200' });
    metrics.add('throughline_gateway_requests_total', 1, { method: 'POST', status: '200' });
    metrics.set('throughline_gateway_connections', 7);
    metrics.set('throughline_gateway_connections', 5);
    metrics.observe('throughline_gateway_append_seconds', 0.003);
    const text = await metrics.render();
    expect(text).toContain('throughline_gateway_requests_total{method="POST",status="200"} 3\n');
    expect(text).toContain('throughline_gateway_connections 5\n');
    expect(text).toContain('throughline_gateway_append_seconds_bucket{le="0.0025"} 0\n');
    expect(text).toContain('throughline_gateway_append_seconds_bucket{le="0.005"} 1\n');
    expect(text).toContain('throughline_gateway_append_seconds_count 1\n');
  });

  it('[CLI-METRICS] two instances in one process do not share values', async () => {
    const first = createPrometheusMetrics({ process: false });
    const second = createPrometheusMetrics({ process: false });
    first.add('throughline_gateway_events_total', 4);
    expect(await second.render()).toContain('throughline_gateway_events_total 0\n');
  });

  it('[CLI-METRICS] the metrics of the process are exposed beside them', async () => {
    expect(await createPrometheusMetrics().render()).toContain('process_resident_memory_bytes');
  });
});
