/**
 * Every option, in one place: its names on the command line, in the environment and in throughline.yaml, its kind, its
 * default and its meaning. Parsing, `--help` and docs/reference/config.md are made from this table.
 */

/** What a value is; `parse-value.ts` says how it is written. */
export type OptionKind =
  'address' | 'address-or-off' | 'log' | 'duration' | 'size' | 'count' | 'switch' | 'list' | 'text' | 'choice';

export type Role = 'serve' | 'gateway' | 'worker';

/** Who takes options: the roles, and the commands of whoever operates them. */
export type OptionUser = Role | 'operate';

export const OPTION_GROUPS = [
  'Addresses',
  'Log',
  'Kafka',
  'MCP server',
  'Access',
  'Output',
  'Limits of the gateway',
  'Limits of the worker',
  'Limits of both',
] as const;

export interface OptionRow {
  readonly group: (typeof OPTION_GROUPS)[number];
  readonly kind: OptionKind;
  /** What stands for the value in help. Switches have none. */
  readonly placeholder?: string;
  /** As a user would write it; null: there is none. */
  readonly default: string | null;
  readonly help: string;
  /** Place in throughline.yaml; null: cannot be set there. */
  readonly yaml: string | null;
  /** False: not on the command line, because other users of the machine can read that. */
  readonly isFlag?: false;
  /** Values are never printed. */
  readonly isSecret?: true;
  /** Paths in the file are relative to the file. */
  readonly isPath?: true;
  readonly choices?: readonly string[];
  /** Who takes it on the command line; absent: all. */
  readonly roles?: readonly OptionUser[];
  /** Fields of the role's schema that it sets. */
  readonly gateway?: string;
  readonly worker?: string;
}

const SERVING = ['serve', 'gateway'] as const;
const HOSTING = ['serve', 'worker'] as const;
const OPERATING = ['operate'] as const;

export const OPTIONS = {
  listen: {
    group: 'Addresses',
    kind: 'address',
    placeholder: 'host:port',
    default: '127.0.0.1:8080',
    help: 'Address of the MCP endpoint. Port 0 takes any free port; the ready line names it.',
    yaml: 'listen',
    roles: SERVING,
    gateway: 'listen',
  },
  admin: {
    group: 'Addresses',
    kind: 'address-or-off',
    placeholder: 'host:port|off',
    default: '127.0.0.1:9464',
    help: 'Address of /livez, /readyz and /metrics. A worker has one only where it is set: several share a machine.',
    yaml: 'admin',
    gateway: 'admin',
  },
  log: {
    group: 'Log',
    kind: 'log',
    placeholder: 'kafka://host:port,…|sqlite:<file>|memory:',
    default: 'sqlite:.throughline/log.db',
    help: 'Where the log is: a Kafka cluster, by one or more of its brokers; or a file, which is created if it does not exist and which processes of one machine may share; or memory:, which forgets everything at the end.',
    yaml: 'log.url',
  },
  retention: {
    group: 'Log',
    kind: 'duration',
    placeholder: 'duration',
    default: '24h',
    help: 'How long events are held: the longest disconnection that a client can resume after. On Kafka the topics have it: `topics apply` sets it, and a start warns if they hold less.',
    yaml: 'log.retention',
  },
  'max-size': {
    group: 'Log',
    kind: 'size',
    placeholder: 'size',
    default: '4GiB',
    help: 'Size at which a log file or memory: takes no more appends until retention has freed room. Not for Kafka.',
    yaml: 'log.maxSize',
  },
  partitions: {
    group: 'Log',
    kind: 'count',
    placeholder: 'number',
    default: null,
    help: 'Partitions of a log that is created now. An existing log keeps its own; on Kafka `topics apply` can add some, which those that run use within seconds. Without: 4; on Kafka 12, or what there is.',
    yaml: 'log.partitions',
  },
  lease: {
    group: 'Log',
    kind: 'duration',
    placeholder: 'duration',
    default: null,
    help: 'Time without a sign of life after which a worker loses its partitions. Without: 3s, on Kafka 8s; there it is the session timeout of the consumer group, and brokers take 6s or more unless `group.min.session.timeout.ms` is lower.',
    yaml: 'log.lease',
    roles: [...HOSTING, ...OPERATING],
  },
  prefix: {
    group: 'Kafka',
    kind: 'text',
    placeholder: 'name',
    default: 'throughline',
    help: 'Topics are <prefix>.inbound, .events, .sessions, .meta and .dead-letter. Another prefix is another log.',
    yaml: 'kafka.prefix',
  },
  replication: {
    group: 'Kafka',
    kind: 'count',
    placeholder: 'number',
    default: null,
    help: 'Replicas of topics that `topics apply` creates. Without: 3. One is for trials: what its broker loses is lost.',
    yaml: 'kafka.replication',
    roles: OPERATING,
  },
  'inbound-retention': {
    group: 'Kafka',
    kind: 'duration',
    placeholder: 'duration',
    default: null,
    help: 'How long `topics apply` has what clients sent held, at least as long as events. Without: as events.',
    yaml: 'kafka.inboundRetention',
    roles: OPERATING,
  },
  'max-message': {
    group: 'Kafka',
    kind: 'size',
    placeholder: 'size',
    default: null,
    help: 'Largest message that `topics apply` has the topics take. Without: 8MiB.',
    yaml: 'kafka.maxMessage',
    roles: OPERATING,
  },
  'kafka-tls': {
    group: 'Kafka',
    kind: 'switch',
    default: 'false',
    help: 'Speaks TLS to the brokers. A file of one of the next three options says so as well.',
    yaml: 'kafka.tls',
  },
  'kafka-tls-ca-file': {
    group: 'Kafka',
    kind: 'text',
    placeholder: 'file',
    default: null,
    help: 'Certificates, in PEM, that those of the brokers must lead to. Without: those that Node knows.',
    yaml: 'kafka.tlsCaFile',
    isPath: true,
  },
  'kafka-tls-cert-file': {
    group: 'Kafka',
    kind: 'text',
    placeholder: 'file',
    default: null,
    help: 'Own certificate, in PEM, for brokers that ask for one.',
    yaml: 'kafka.tlsCertFile',
    isPath: true,
  },
  'kafka-tls-key-file': {
    group: 'Kafka',
    kind: 'text',
    placeholder: 'file',
    default: null,
    help: 'Key of the own certificate, in PEM.',
    yaml: 'kafka.tlsKeyFile',
    isPath: true,
  },
  'kafka-sasl': {
    group: 'Kafka',
    kind: 'choice',
    placeholder: 'mechanism',
    choices: ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'],
    default: null,
    help: 'How to log in at the brokers: plain, scram-sha-256, scram-sha-512 or oauthbearer. Without: not at all.',
    yaml: 'kafka.sasl',
  },
  'kafka-username': {
    group: 'Kafka',
    kind: 'text',
    placeholder: 'name',
    default: null,
    help: 'User for plain and scram; client id for oauthbearer with --kafka-oauth-url.',
    yaml: 'kafka.username',
  },
  'kafka-password': {
    group: 'Kafka',
    kind: 'text',
    placeholder: 'password',
    default: null,
    help: 'Password for plain and scram; client secret for oauthbearer with --kafka-oauth-url.',
    yaml: 'kafka.password',
    isFlag: false,
    isSecret: true,
  },
  'kafka-password-file': {
    group: 'Kafka',
    kind: 'text',
    placeholder: 'file',
    default: null,
    help: 'The same from a file; a line break at its end is no part of it.',
    yaml: 'kafka.passwordFile',
    isPath: true,
  },
  'kafka-token-file': {
    group: 'Kafka',
    kind: 'text',
    placeholder: 'file',
    default: null,
    help: 'Token for oauthbearer, read again for each login, so that whoever renews it only has to write the file.',
    yaml: 'kafka.tokenFile',
    isPath: true,
  },
  'kafka-oauth-url': {
    group: 'Kafka',
    kind: 'text',
    placeholder: 'url',
    default: null,
    help: 'Token endpoint for oauthbearer by client credentials. A token is used for four fifths of its `expires_in`.',
    yaml: 'kafka.oauthUrl',
  },
  'kafka-oauth-scope': {
    group: 'Kafka',
    kind: 'text',
    placeholder: 'scope',
    default: null,
    help: 'Scope to ask for at the token endpoint.',
    yaml: 'kafka.oauthScope',
  },
  'kafka-client-id': {
    group: 'Kafka',
    kind: 'text',
    placeholder: 'name',
    default: null,
    help: 'The `client.id` of requests, which quotas and broker logs go by. Without: throughline-serve, throughline-gateway, throughline-worker or throughline-operator.',
    yaml: 'kafka.clientId',
  },
  stdio: {
    group: 'MCP server',
    kind: 'text',
    placeholder: '"command"',
    default: null,
    help: 'Serves a stdio MCP server: the command line that starts it, in quotes. One process a session.',
    yaml: null,
    roles: HOSTING,
  },
  module: {
    group: 'MCP server',
    kind: 'text',
    placeholder: 'path',
    default: null,
    help: 'Serves an ES module whose default export is a factory (ctx) => McpServer. A path, or the name of a package.',
    yaml: null,
    roles: HOSTING,
  },
  upstream: {
    group: 'MCP server',
    kind: 'text',
    placeholder: 'url',
    default: null,
    help: 'Serves an existing Streamable HTTP MCP server at this URL.',
    yaml: null,
    roles: HOSTING,
  },
  'on-owner-loss': {
    group: 'MCP server',
    kind: 'choice',
    placeholder: 'terminate|restore',
    choices: ['terminate', 'restore'],
    default: 'terminate',
    help: 'What happens to a session when its worker is gone: it ends with a reason, or it is rebuilt on another worker (only for servers that keep no other state of a session).',
    yaml: null,
    roles: HOSTING,
  },
  'max-sessions': {
    group: 'MCP server',
    kind: 'count',
    placeholder: 'number',
    default: '1000',
    help: 'Server instances that a worker hosts at most.',
    yaml: null,
    roles: HOSTING,
  },
  'idle-ttl': {
    group: 'MCP server',
    kind: 'duration',
    placeholder: 'duration',
    default: '1h',
    help: 'Time without traffic after which a session ends.',
    yaml: null,
    roles: HOSTING,
  },
  'auth-tokens-file': {
    group: 'Access',
    kind: 'text',
    placeholder: 'file',
    default: null,
    help: 'Bearer tokens: one line each, <name>:<SHA-256 of the token in hex>, as `throughline secret hash` prints it. Without, nobody is asked for a token.',
    yaml: 'auth.tokensFile',
    isPath: true,
    roles: [...SERVING, ...OPERATING],
  },
  'allow-anonymous': {
    group: 'Access',
    kind: 'switch',
    default: 'false',
    help: 'Allows an address that other machines can reach although no tokens are set.',
    yaml: 'auth.allowAnonymous',
    roles: SERVING,
  },
  'allowed-hosts': {
    group: 'Access',
    kind: 'list',
    placeholder: 'name,…',
    default: null,
    help: 'Host names accepted in the Host header. Without: loopback names if listening on loopback, else any.',
    yaml: 'auth.allowedHosts',
    roles: SERVING,
    gateway: 'allowedHosts',
  },
  'allowed-origins': {
    group: 'Access',
    kind: 'list',
    placeholder: 'origin,…',
    default: null,
    help: 'Origins of web pages that may call, besides those on loopback.',
    yaml: 'auth.allowedOrigins',
    roles: SERVING,
    gateway: 'allowedOrigins',
  },
  secrets: {
    group: 'Access',
    kind: 'list',
    placeholder: 'secret,…',
    default: null,
    help: 'Secrets that sign session ids: the first signs, all verify. Without: one is made and kept in the log; on Kafka a gateway needs them.',
    yaml: 'secrets',
    isFlag: false,
    isSecret: true,
  },
  'secrets-file': {
    group: 'Access',
    kind: 'text',
    placeholder: 'file',
    default: null,
    help: 'The same from a file, one secret a line, as `throughline secret new` prints it.',
    yaml: 'secretsFile',
    isPath: true,
    roles: [...SERVING, ...OPERATING],
  },
  'json-logs': {
    group: 'Output',
    kind: 'switch',
    default: 'false',
    help: 'Logs as JSON lines. Logs go to stderr in either form.',
    yaml: 'jsonLogs',
  },
  'log-level': {
    group: 'Output',
    kind: 'choice',
    placeholder: 'level',
    choices: ['debug', 'info', 'warn', 'error', 'silent'],
    default: 'info',
    help: 'Least level that is logged: debug, info, warn, error or silent.',
    yaml: 'logLevel',
  },
  drain: {
    group: 'Limits of both',
    kind: 'duration',
    placeholder: 'duration',
    default: null,
    help: 'On stop: how long running calls get to finish, also when a partition goes to a worker that joins, and over how long connections are closed. Without: 10s and 2s.',
    yaml: 'limits.drain',
    gateway: 'drainMs',
    worker: 'drainMs',
  },
  'append-timeout': {
    group: 'Limits of both',
    kind: 'duration',
    placeholder: 'duration',
    default: '20s',
    help: 'How long an append to the log may take. Until then a POST waits for an outage of the log to end, and a worker keeps its claims; after it, calls that run end in doubt.',
    yaml: 'limits.appendTimeout',
    gateway: 'appendTimeoutMs',
    worker: 'appendTimeoutMs',
  },
  'max-life': {
    group: 'Limits of both',
    kind: 'duration',
    placeholder: 'duration',
    default: '7d',
    help: 'Age at which a session ends.',
    yaml: 'limits.maxLife',
    gateway: 'maxLifeMs',
    worker: 'maxLifeMs',
  },
  'dead-after': {
    group: 'Limits of both',
    kind: 'duration',
    placeholder: 'duration',
    default: '4s',
    help: 'Time without a heartbeat after which a worker counts as gone.',
    yaml: 'limits.deadAfter',
    gateway: 'deadAfterMs',
    worker: 'deadAfterMs',
  },
  'max-body': {
    group: 'Limits of the gateway',
    kind: 'size',
    placeholder: 'size',
    default: '4MiB',
    help: 'Largest body of a request.',
    yaml: 'limits.maxBody',
    roles: [...SERVING, ...OPERATING],
    gateway: 'maxBodyBytes',
  },
  'max-connections': {
    group: 'Limits of the gateway',
    kind: 'count',
    placeholder: 'number',
    default: '10000',
    help: 'Open event streams at most; more get 503.',
    yaml: 'limits.maxConnections',
    roles: SERVING,
    gateway: 'maxConnections',
  },
  'keep-alive': {
    group: 'Limits of the gateway',
    kind: 'duration',
    placeholder: 'duration',
    default: '15s',
    help: 'Silence on a stream after which a comment is sent.',
    yaml: 'limits.keepAlive',
    roles: SERVING,
    gateway: 'keepAliveMs',
  },
  retry: {
    group: 'Limits of the gateway',
    kind: 'duration',
    placeholder: 'duration',
    default: '500ms',
    help: 'How long clients are told to wait before they reconnect, before jitter.',
    yaml: 'limits.retry',
    roles: SERVING,
    gateway: 'retryMs',
  },
  refresh: {
    group: 'Limits of the gateway',
    kind: 'duration',
    placeholder: 'duration',
    default: null,
    help: 'Silence after which an idle stream gets a new id, so that its cursor stays ahead of retention. Without: 10m, or a quarter of the retention if that is less.',
    yaml: 'limits.refresh',
    roles: SERVING,
    gateway: 'refreshMs',
  },
  cache: {
    group: 'Limits of the gateway',
    kind: 'size',
    placeholder: 'size',
    default: '64MiB',
    help: 'Recent events held in memory.',
    yaml: 'limits.cache',
    roles: SERVING,
    gateway: 'cacheBytes',
  },
  'catch-up-readers': {
    group: 'Limits of the gateway',
    kind: 'count',
    placeholder: 'number',
    default: '16',
    help: 'Reads of older events that run at once.',
    yaml: 'limits.catchUpReaders',
    roles: SERVING,
    gateway: 'catchUpReaders',
  },
  checkpoint: {
    group: 'Limits of the worker',
    kind: 'duration',
    placeholder: 'duration',
    default: '2s',
    help: 'Time between checkpoints of a busy partition.',
    yaml: 'limits.checkpoint',
    roles: HOSTING,
    worker: 'checkpointMs',
  },
  heartbeat: {
    group: 'Limits of the worker',
    kind: 'duration',
    placeholder: 'duration',
    default: '1s',
    help: 'Time between heartbeats of a worker.',
    yaml: 'limits.heartbeat',
    roles: HOSTING,
    worker: 'heartbeatMs',
  },
  'max-sessions-per-principal': {
    group: 'Limits of the worker',
    kind: 'count',
    placeholder: 'number',
    default: '10000',
    help: 'Server instances of one principal in a worker, over all servers.',
    yaml: 'limits.maxSessionsPerPrincipal',
    roles: HOSTING,
    worker: 'maxSessionsPerPrincipal',
  },
  'max-running': {
    group: 'Limits of the worker',
    kind: 'count',
    placeholder: 'number',
    default: '2048',
    help: 'Requests that run at once in a worker.',
    yaml: 'limits.maxRunning',
    roles: HOSTING,
    worker: 'maxRunning',
  },
  'max-running-per-principal': {
    group: 'Limits of the worker',
    kind: 'count',
    placeholder: 'number',
    default: '2048',
    help: 'Requests of one principal that run at once in a worker. Less than --max-running keeps places for the others.',
    yaml: 'limits.maxRunningPerPrincipal',
    roles: HOSTING,
    worker: 'maxRunningPerPrincipal',
  },
  'max-running-per-session': {
    group: 'Limits of the worker',
    kind: 'count',
    placeholder: 'number',
    default: '32',
    help: 'Requests that run at once in one session.',
    yaml: 'limits.maxRunningPerSession',
    roles: HOSTING,
    worker: 'maxRunningPerSession',
  },
  'max-queued-per-session': {
    group: 'Limits of the worker',
    kind: 'count',
    placeholder: 'number',
    default: '256',
    help: 'Requests that wait in one session; more are answered with an error.',
    yaml: 'limits.maxQueuedPerSession',
    roles: HOSTING,
    worker: 'maxQueuedPerSession',
  },
  'unload-after': {
    group: 'Limits of the worker',
    kind: 'duration',
    placeholder: 'duration',
    default: '5m',
    help: 'Idle time after which a session that can be restored is unloaded from memory.',
    yaml: 'limits.unloadAfter',
    roles: HOSTING,
    worker: 'unloadAfterMs',
  },
} as const satisfies Record<string, OptionRow>;

export type OptionName = keyof typeof OPTIONS;

export const OPTION_NAMES = Object.keys(OPTIONS) as readonly OptionName[];

export function optionRow(name: OptionName): OptionRow {
  return OPTIONS[name];
}

export function isOptionName(text: string): text is OptionName {
  return Object.hasOwn(OPTIONS, text);
}

/** The name in the environment. */
export function environmentName(name: string): string {
  return `THROUGHLINE_${name.replaceAll('-', '_').toUpperCase()}`;
}

/** The options that are no part of the configuration itself. */
export const CONFIG_FILE_OPTION = {
  name: 'config',
  placeholder: 'file',
  default: './throughline.yaml, if it exists',
  help: 'The configuration file.',
} as const;
