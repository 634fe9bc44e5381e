/** Every check of `throughline doctor`: its code, why it matters, and what a finding other than ok means. docs/reference/doctor.md is made from this table. */

export interface DoctorCheck {
  /** On which logs it is made. */
  readonly of: 'kafka' | 'file' | 'both';
  /** What goes wrong where it does not hold. */
  readonly why: string;
  /** What is not ok, by level. */
  readonly finds: string;
}

export const DOCTOR_CHECKS = {
  'cluster-reachable': {
    of: 'kafka',
    why: 'Without the cluster nothing is taken in and nothing is delivered.',
    finds: 'fail: no broker answers, or the login is refused.',
  },
  'broker-versions': {
    of: 'kafka',
    why: 'Requests that a broker does not know fail only when its partitions are used.',
    finds: 'fail: a broker is older than Kafka 2.4. warn: a broker does not answer.',
  },
  'topics-exist': {
    of: 'kafka',
    why: 'No role starts without its topics, and they are never created by themselves.',
    finds: 'fail: a topic is missing.',
  },
  'topic-settings': {
    of: 'kafka',
    why: 'Topics that are set otherwise lose records, refuse large ones, or let producers choose the time.',
    finds: 'fail: records get lost, or the log is not opened. warn: another setting is not as it should be.',
  },
  replication: {
    of: 'kafka',
    why: 'With one replica the loss of a disk is the loss of the history; with two, one broker less stops the writing.',
    finds: 'warn: fewer than three replicas.',
  },
  'replicas-in-sync': {
    of: 'kafka',
    why: 'An append is acknowledged by every replica in sync: with too few it is refused, and with one it is safe nowhere else.',
    finds: 'fail: fewer in sync than `min.insync.replicas`. warn: fewer than there are.',
  },
  'partitions-online': {
    of: 'kafka',
    why: 'A partition without a leader takes nothing and gives nothing; its sessions stand still.',
    finds: 'fail: a partition has no leader.',
  },
  'unclean-election': {
    of: 'kafka',
    why: 'A replica that lags becomes leader and acknowledged records are gone: that ends every session.',
    finds: 'fail: `unclean.leader.election.enable` is on.',
  },
  'max-message': {
    of: 'kafka',
    why: 'A body that the gateway takes and the topic does not fails after it was accepted.',
    finds: 'fail: `max.message.bytes` does not hold a body of `--max-body`.',
  },
  'group-timeouts': {
    of: 'kafka',
    why: 'The brokers refuse a member whose session timeout is out of their range: then no worker starts.',
    finds: 'fail: `--lease` is outside of what the brokers take.',
  },
  'auto-create': {
    of: 'kafka',
    why: 'Other clients of the cluster can bring a deleted topic back with other settings.',
    finds: 'warn: `auto.create.topics.enable` is on.',
  },
  group: {
    of: 'kafka',
    why: 'The group divides the partitions; without members nobody is given any.',
    finds: 'warn: workers live and the group has no members, or it has been dividing partitions for the whole check.',
  },
  'log-opens': {
    of: 'both',
    why: 'What is wrong here keeps every role from starting.',
    finds: 'fail: the log cannot be opened.',
  },
  'log-size': {
    of: 'file',
    why: 'A log file at its limit takes no more appends until retention has freed room.',
    finds: 'fail: above 95 % of `--max-size`. warn: above 80 %.',
  },
  retention: {
    of: 'both',
    why: 'A client that comes back later than this cannot resume: its session ends.',
    finds: 'fail: events are held shorter than `--retention` promises, or `inbound` shorter than events.',
  },
  'window-held': {
    of: 'both',
    why: 'Something other than time has removed events: clients within the promised window are refused.',
    finds: 'fail: the oldest event of a partition is younger than the window, and older ones were removed.',
  },
  sizing: {
    of: 'both',
    why: 'The window is the longest disconnection that you promise to survive; its price is disk.',
    finds: 'never more than ok: it says events a second, and how many the window holds at that rate.',
  },
  clock: {
    of: 'both',
    why: 'Sessions are aged and signed by the clock of gateways, records by that of brokers.',
    finds:
      'fail: more than a minute apart. warn: more than five seconds. unknown: no worker gave a sign to measure by.',
  },
  secret: {
    of: 'both',
    why: 'Whoever knows the secret can make session ids; gateways with different ones refuse each other’s sessions.',
    finds: 'fail: it is weak. unknown: none is configured where this command runs.',
  },
  epoch: {
    of: 'both',
    why: 'Another epoch ends every session; an epoch of another cluster counts for nothing here.',
    finds: 'fail: `meta` was copied from another cluster. warn: there is none yet, or it changed in the last hour.',
  },
  owners: {
    of: 'both',
    why: 'Requests in a partition without a living owner wait, and it gets no new sessions.',
    finds:
      'fail: a partition has no living owner. warn: two workers claim one. unknown: a partition could not be read.',
  },
  lag: {
    of: 'both',
    why: 'Requests that wait long are a server that hangs, or a worker that does.',
    finds: 'warn: the oldest open request is older than five minutes.',
  },
  poison: {
    of: 'both',
    why: 'A request that was started more than once may have ended the worker that ran it.',
    finds: 'warn: an open request was started more than once, or records of events cannot be read.',
  },
  'dead-letters': {
    of: 'both',
    why: 'Records that nobody could read were set aside: somebody writes what this product does not understand.',
    finds: 'warn: dead letters are held.',
  },
} as const satisfies Record<string, DoctorCheck>;

export type DoctorCode = keyof typeof DOCTOR_CHECKS;

type Level = 'ok' | 'warn' | 'fail' | 'unknown';

export type Finding = {
  readonly code: DoctorCode;
  /** What is. */
  readonly what: string;
} & (
  | { readonly level: 'ok'; readonly fix: null }
  /** `fix`: a command, or a sentence where there is none. */
  | { readonly level: Exclude<Level, 'ok'>; readonly fix: string }
);

const LEVELS = [
  ['ok', 'As it should be.'],
  ['warn', 'Works, and should be looked at.'],
  ['fail', 'Something is lost, refused or about to be. The exit code is 1.'],
  [
    'unknown',
    'Could not be seen: `fix` names the right that is missing, what has to run, or where to look before another try. What passes by itself was tried again for some seconds. Never a failure.',
  ],
] as const;

export function renderDoctorPage(): string {
  return [
    '# What `throughline doctor` checks',
    '',
    'Each finding has a code that stays the same, a level, what is, why it matters, and a fix. With `--json` they are',
    'objects with the fields `code`, `level`, `what`, `why` and `fix`. This page is made from',
    '`services/cli/src/operate/doctor-codes.ts`; a test fails when it has drifted.',
    '',
    '| level | meaning |',
    '| --- | --- |',
    ...LEVELS.map(([level, meaning]) => `| \`${level}\` | ${meaning} |`),
    '',
    '| code | on | why it matters | finds |',
    '| --- | --- | --- | --- |',
    ...Object.entries(DOCTOR_CHECKS).map(
      ([code, { of, why, finds }]) => `| \`${code}\` | ${ON[of]} | ${why} | ${finds} |`,
    ),
    '',
  ].join('\n');
}

const ON = { kafka: 'Kafka', file: 'log files', both: 'both' } as const;
