/** Every metric: its type, unit, labels and meaning. docs/reference/metrics.md is compared with this table by a test. */
interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** Histogram bucket bounds, in the unit of the name. */
  readonly buckets?: readonly number[];
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export const METRIC_TABLE = {
  throughline_gateway_requests_total: {
    type: 'counter',
    help: 'HTTP requests answered, by method and status.',
    labels: ['method', 'status'],
  },
  throughline_gateway_connections: { type: 'gauge', help: 'Open SSE connections.', labels: [] },
  throughline_gateway_events_total: { type: 'counter', help: 'SSE messages written to clients.', labels: [] },
  throughline_gateway_resumes_total: {
    type: 'counter',
    help: 'Resumes by outcome: resumed, finished, or the reason of the refusal.',
    labels: ['outcome'],
  },
  throughline_gateway_append_seconds: {
    type: 'histogram',
    help: 'Time from append to ack of client messages.',
    labels: [],
    buckets: SECONDS,
  },
  throughline_gateway_slow_readers_total: {
    type: 'counter',
    help: 'Connections that fell behind the hot cache and went on as catch-up readers.',
    labels: [],
  },
  throughline_gateway_stalled_clients_total: {
    type: 'counter',
    help: 'Connections cut because their client took nothing of what waited for it for four times --keep-alive.',
    labels: [],
  },
  throughline_gateway_tokens_refused_total: {
    type: 'counter',
    help: 'Requests refused for their bearer token, by the reason that the client is told.',
    labels: ['reason'],
  },
  throughline_gateway_key_fetch_errors_total: {
    type: 'counter',
    help: 'Times that the keys of an issuer could not be had; those that are known go on for a day.',
    labels: [],
  },
  throughline_gateway_expired_streams_total: {
    type: 'counter',
    help: 'Streams ended because the token that they were opened with had expired.',
    labels: [],
  },
  throughline_tail_records_total: {
    type: 'counter',
    help: 'Records of events read by tails, by verdict: accepted, fenced, unreadable.',
    labels: ['verdict'],
  },
  throughline_epoch_info: {
    type: 'gauge',
    help: '1 for the epoch in force, 0 for those that this process saw end.',
    labels: ['epoch'],
  },
  throughline_tail_lag: {
    type: 'gauge',
    help: 'Records of events known to be in the log and not yet read, over all tails.',
    labels: [],
  },
  throughline_tail_cache_bytes: { type: 'gauge', help: 'Bytes held in hot caches.', labels: [] },
  throughline_tail_read_errors_total: {
    type: 'counter',
    help: 'Failed reads of the log, by code; each is tried again.',
    labels: ['code'],
  },
  throughline_history_suspected_total: {
    type: 'counter',
    help: 'Times that the log was not what was seen before: a lagging view or a broken history, looked into by a probe. By topic.',
    labels: ['topic'],
  },
  throughline_history_proved_total: {
    type: 'counter',
    help: 'Proofs by this process that the history of the log broke; each makes a new epoch, once for all processes. By topic.',
    labels: ['topic'],
  },
  throughline_epoch_changes_total: {
    type: 'counter',
    help: 'Changes of the epoch seen by this process, by proof or by an operator; each ends all sessions.',
    labels: [],
  },
  throughline_worker_owned_partitions: {
    type: 'gauge',
    help: "Partitions whose claim in force is this worker's.",
    labels: [],
  },
  throughline_worker_claims_total: {
    type: 'counter',
    help: 'Claims appended, by verdict: valid, void.',
    labels: ['verdict'],
  },
  throughline_worker_lag: {
    type: 'gauge',
    help: 'Offsets of inbound from the lowest open request to the end, over the partitions owned: the lag that Kafka shows.',
    labels: [],
  },
  throughline_worker_open_requests: {
    type: 'gauge',
    help: 'Requests taken in and not yet answered, over the partitions owned.',
    labels: [],
  },
  throughline_worker_sessions: { type: 'gauge', help: 'Hosted server instances.', labels: [] },
  throughline_worker_requests_total: {
    type: 'counter',
    help: 'Requests settled, by outcome: answered, failed, cancelled, owner-lost, rerun.',
    labels: ['outcome'],
  },
  throughline_worker_dropped_total: {
    type: 'counter',
    help: 'Messages of clients and of servers that reached nobody, by reason.',
    labels: ['reason'],
  },
  throughline_worker_unreadable_total: {
    type: 'counter',
    help: 'Records that could not be used, by topic; each is copied to dead-letter, and those of sessions are written anew.',
    labels: ['topic'],
  },
} as const satisfies Record<string, MetricRow>;

export type MetricName = keyof typeof METRIC_TABLE;
