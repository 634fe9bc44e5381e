/** What services say about themselves. Logs are events with fields, never payloads; metrics come from one table. */
import type { MetricName } from './metric-table.ts';

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  child(fields: LogFields): Logger;
}

export type MetricLabels = Readonly<Record<string, string>>;

export interface Metrics {
  /** Adds to a counter. */
  add(name: MetricName, by?: number, labels?: MetricLabels): void;
  /** Sets a gauge. */
  set(name: MetricName, value: number, labels?: MetricLabels): void;
  /** Observes a histogram value, in the unit of the table. */
  observe(name: MetricName, value: number, labels?: MetricLabels): void;
}

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

export const noMetrics: Metrics = { add: () => undefined, set: () => undefined, observe: () => undefined };
