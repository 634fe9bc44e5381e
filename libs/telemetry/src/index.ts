export { METRIC_TABLE } from './metric-table.ts';
export type { MetricName } from './metric-table.ts';
export { noMetrics, silentLogger } from './ports.ts';
export type { LogFields, Logger, MetricLabels, Metrics } from './ports.ts';
