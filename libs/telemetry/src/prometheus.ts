/** The metrics of production: prom-client, one instrument a row of the table. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { METRIC_TABLE } from './metric-table.ts';
import type { MetricName } from './metric-table.ts';
import type { Metrics } from './ports.ts';

export interface PrometheusMetrics extends Metrics {
  /** Everything in the Prometheus text format. */
  render(): Promise<string>;
  /** Content type of {@link render}. */
  readonly contentType: string;
}

export interface PrometheusOptions {
  /** Also the metrics of the process and of Node (memory, CPU, event loop). Default true. */
  readonly process?: boolean;
}

/** Counters without labels start at 0, so that a rate over them exists before the first event. */
export function createPrometheusMetrics(options: PrometheusOptions = {}): PrometheusMetrics {
  const registry = new Registry();
  if (options.process ?? true) collectDefaultMetrics({ register: registry });
  const counters = new Map<MetricName, Counter>();
  const gauges = new Map<MetricName, Gauge>();
  const histograms = new Map<MetricName, Histogram>();
  for (const [key, row] of Object.entries(METRIC_TABLE)) {
    const name = key as MetricName;
    const common = { name, help: row.help, labelNames: [...row.labels], registers: [registry] };
    switch (row.type) {
      case 'counter':
        counters.set(name, new Counter(common));
        break;
      case 'gauge':
        gauges.set(name, new Gauge(common));
        break;
      case 'histogram':
        histograms.set(name, new Histogram({ ...common, buckets: [...row.buckets] }));
        break;
    }
  }
  return {
    add(name, by = 1, labels = {}) {
      counters.get(name)?.inc(labels, by);
    },
    set(name, value, labels = {}) {
      gauges.get(name)?.set(labels, value);
    },
    observe(name, value, labels = {}) {
      histograms.get(name)?.observe(labels, value);
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
