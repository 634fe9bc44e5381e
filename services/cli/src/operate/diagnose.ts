/** Findings about a log, whatever it lies on: a pure function of what was gathered. */
import { formatDuration, formatSize } from '../format-value.ts';
import { diagnoseKafka } from './diagnose-kafka.ts';
import type { Diagnosed, Promises } from './diagnosed.ts';
import type { Finding } from './doctor-codes.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { formatAge, formatTime } from './time-text.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const OLD_REQUEST_MS = 5 * MINUTE;
const LEAST_DISTINCT_BYTES = 8;

export function diagnose(facts: DoctorFacts, promises: Promises): Finding[] {
  const acl = (operation: string, resource: 'topic' | 'group' | 'cluster'): string => {
    const on =
      resource === 'cluster' ? '--cluster' : `--${resource} ${promises.prefix}. --resource-pattern-type prefixed`;
    return `kafka-acls.sh --bootstrap-server ${promises.brokers.join(',')} --add --allow-principal User:<you> --operation ${operation} ${on}`;
  };
  const again = `check again: ${promises.cli('doctor')}`;
  const fixFor: Diagnosed['fixFor'] = ({ denied }, operation, resource) => {
    if (denied) return acl(operation, resource);
    return facts.kafka === null ? again : `look at the logs of the brokers, then ${again}`;
  };
  const living = facts.ownership.known ? facts.ownership.value.living.size : 0;
  const asked: Diagnosed = { ...promises, differences: facts.differences, livingWorkers: living, fixFor, acl };
  const { kafka } = facts;
  const cluster = kafka === null ? [] : diagnoseKafka(kafka, asked);
  if (kafka !== null && !kafka.cluster.known) return cluster;
  const opens = logOpens(facts, asked);
  if (opens.level === 'fail') return [...cluster, opens];
  return [
    ...cluster,
    opens,
    ...logSize(facts),
    retention(facts, asked),
    windowHeld(facts, asked),
    sizing(facts, asked),
    clock(facts),
    secret(facts),
    epoch(facts, asked),
    owners(facts, asked),
    lag(facts, asked),
    poison(facts, asked),
    deadLetters(facts, asked),
  ];
}

function logOpens({ opened, kafka, differences }: DoctorFacts, { acl, cli }: Diagnosed): Finding {
  if (opened.known) return ok('log-opens', `${opened.value.clusterId}, ${opened.value.partitions} partitions`);
  if (opened.denied) return { code: 'log-opens', level: 'unknown', what: opened.message, fix: acl('Read', 'topic') };
  const isMissing = differences?.known === true && differences.value.some(({ kind }) => kind === 'create');
  return {
    code: 'log-opens',
    level: 'fail',
    what: opened.message,
    fix:
      kafka === null
        ? `name the file of a log with --log sqlite:<file>; \`${cli('serve')}\` makes one`
        : cli(isMissing ? 'topics apply' : 'topics diff'),
  };
}

function logSize({ file }: DoctorFacts): Finding[] {
  if (file === null) return [];
  const share = file.bytes / file.maxBytes;
  const what = `${Math.round(file.bytes / 1024 ** 2)} MiB of ${formatSize(file.maxBytes)} (${Math.round(share * 100)} %)`;
  if (share <= 0.8) return [ok('log-size', what)];
  return [
    { code: 'log-size', level: share > 0.95 ? 'fail' : 'warn', what, fix: 'raise --max-size, or lower --retention' },
  ];
}

function retention({ opened, kafka }: DoctorFacts, { windowMs, cli, acl }: Diagnosed): Finding {
  const of = (name: string): number | null => {
    const settings = kafka?.topics.find(({ topic }) => topic === name)?.settings;
    const text = settings?.known === true ? settings.value.get('retention.ms') : undefined;
    return text === undefined ? null : text === '-1' ? Infinity : Number(text);
  };
  const events = kafka === null ? (opened.known ? opened.value.retentionMs : null) : of('events');
  if (events === null)
    return unknown('retention', 'the retention of events is not known', acl('DescribeConfigs', 'topic'));
  const inbound = kafka === null ? events : of('inbound');
  if (events < windowMs)
    return {
      code: 'retention',
      level: 'fail',
      what: `events are held ${show(events)}, and ${show(windowMs)} are promised`,
      fix:
        kafka === null
          ? `start every process with --retention ${show(windowMs)}`
          : cli('topics apply', ['--retention', show(windowMs)]),
    };
  if (inbound !== null && inbound < events)
    return {
      code: 'retention',
      level: 'fail',
      what: `inbound is held ${show(inbound)}, events ${show(events)}: a request would go before its answer`,
      fix: cli('topics apply', ['--inbound-retention', show(events)]),
    };
  return ok('retention', `events are held ${show(events)}; promised are ${show(windowMs)}`);
}

function show(ms: number): string {
  return ms === Infinity ? 'for ever' : formatDuration(ms);
}

function windowHeld({ spans, nowMs }: DoctorFacts, { windowMs, fixFor }: Diagnosed): Finding {
  if (!spans.known) return unknown('window-held', spans.message, fixFor(spans, 'Read', 'topic'));
  const short = spans.value.filter(
    ({ start, oldestMs }) => start > 0 && oldestMs !== null && nowMs - oldestMs < windowMs,
  );
  const [worst] = short.toSorted((a, b) => (b.oldestMs ?? 0) - (a.oldestMs ?? 0));
  if (worst === undefined) return ok('window-held', 'nothing within the window was removed');
  return {
    code: 'window-held',
    level: 'fail',
    what: `${short.length} partitions hold less than the window; partition ${worst.partition} begins at ${worst.start}, ${formatAge(nowMs - (worst.oldestMs ?? 0))} ago`,
    fix: 'raise retention.bytes of the topic or --max-size of the file; after a planned removal this goes away by itself',
  };
}

function sizing({ spans, nowMs }: DoctorFacts, { windowMs, fixFor }: Diagnosed): Finding {
  if (!spans.known) return unknown('sizing', spans.message, fixFor(spans, 'Read', 'topic'));
  const rate = spans.value.reduce((sum, { start, end, oldestMs }) => {
    // Less than a minute says nothing of a rate.
    const seconds = oldestMs === null ? 0 : Math.max(MINUTE, nowMs - oldestMs) / SECOND;
    return seconds === 0 ? sum : sum + (end - start) / seconds;
  }, 0);
  const held = Math.round((rate * windowMs) / SECOND);
  return ok(
    'sizing',
    `${rate < 10 ? rate.toFixed(1) : Math.round(rate)} records/s of events; ${show(windowMs)} hold about ${held.toLocaleString('en')}`,
  );
}

function clock({ ownership }: DoctorFacts): Finding {
  const skewMs = ownership.known ? ownership.value.skewMs : null;
  if (skewMs === null)
    return unknown('clock', 'no worker gave a sign of life to measure by', 'start a worker, then check again');
  const what = `this machine and the log are ${(skewMs / SECOND).toFixed(1)} s apart, delivery included`;
  const apart = Math.abs(skewMs);
  if (apart <= 5 * SECOND) return ok('clock', what);
  return {
    code: 'clock',
    level: apart > MINUTE ? 'fail' : 'warn',
    what,
    fix: 'timedatectl status; let NTP set the clock here and on the brokers',
  };
}

function secret({ secrets, kafka }: DoctorFacts): Finding {
  if (!secrets.known)
    return {
      code: 'secret',
      level: 'fail',
      what: secrets.message,
      fix: 'throughline secret new > throughline.secrets',
    };
  const { secrets: all, from } = secrets.value;
  if (all.length === 0)
    return unknown(
      'secret',
      'none is configured here',
      kafka === null
        ? 'the first gateway makes one'
        : 'check again with the --secrets-file of the gateways; `throughline secret new` makes one',
    );
  const weak = all.findIndex((bytes) => new Set(bytes).size < LEAST_DISTINCT_BYTES);
  if (weak >= 0)
    return {
      code: 'secret',
      level: 'fail',
      what: `secret ${weak + 1} of ${all.length} can be guessed: it has ${new Set(all[weak]).size} different bytes`,
      fix: 'throughline secret new > throughline.secrets',
    };
  const place = {
    configuration: 'configured',
    log: 'kept in the log',
    'local-file': 'in the local file of a trial',
    nowhere: '',
  }[from];
  return ok('secret', `${all.length} ${place}; the first signs, all verify`);
}

function epoch({ ownership, nowMs }: DoctorFacts, { cli, fixFor }: Diagnosed): Finding {
  if (!ownership.known) return unknown('epoch', ownership.message, fixFor(ownership, 'Read', 'topic'));
  const { inForce, epochs } = ownership.value.meta;
  if (inForce === null) {
    const foreign = epochs.find(({ verdict }) => verdict === 'foreign');
    if (foreign !== undefined)
      return {
        code: 'epoch',
        level: 'fail',
        what: `meta holds epochs of another log (${foreign.clusterId}) and none of this one: it was copied`,
        fix: 'give this log a --prefix or a file of its own; a copied history cannot be resumed',
      };
    return { code: 'epoch', level: 'warn', what: 'there is none yet', fix: 'start a gateway or a worker' };
  }
  const ageMs = nowMs - inForce.atMs;
  const what = `${inForce.token} for ${formatAge(ageMs)}, because: ${inForce.reason}; ${epochs.filter(({ verdict }) => verdict === 'former').length} before it`;
  if (inForce.previous !== null && ageMs < HOUR) return { code: 'epoch', level: 'warn', what, fix: cli('epoch show') };
  return ok('epoch', what);
}

function owners({ ownership }: DoctorFacts, { acl, cli, fixFor }: Diagnosed): Finding {
  if (!ownership.known) return unknown('owners', ownership.message, fixFor(ownership, 'Read', 'topic'));
  const { rows, living, meta, isDenied } = ownership.value;
  if (meta.inForce === null) return unknown('owners', 'there is no epoch yet', 'start a worker');
  const named = (state: string): string =>
    rows
      .filter((row) => row.state === state)
      .map(({ partition }) => partition)
      .join(', ');
  const without = rows.filter(({ state }) => state === 'none' || state === 'released' || state === 'gone');
  if (without.length > 0)
    return {
      code: 'owners',
      level: 'fail',
      what: `${living.size} workers live; partitions without one: ${without.map(({ partition }) => partition).join(', ')}`,
      fix: living.size === 0 ? 'start a worker' : cli('owners'),
    };
  if (rows.some(({ state }) => state === 'unknown')) {
    const first = rows.find(({ state }) => state === 'unknown');
    return unknown(
      'owners',
      `partitions ${named('unknown')} could not be read: ${first?.error ?? ''}`,
      isDenied ? acl('Read', 'topic') : cli('owners'),
    );
  }
  if (rows.some(({ state }) => state === 'contested'))
    return { code: 'owners', level: 'warn', what: `two workers claim ${named('contested')}`, fix: cli('owners') };
  return ok('owners', `${living.size} workers own all ${rows.length} partitions`);
}

function lag({ ownership, nowMs }: DoctorFacts, { cli, fixFor }: Diagnosed): Finding {
  if (!ownership.known) return unknown('lag', ownership.message, fixFor(ownership, 'Read', 'topic'));
  const { rows } = ownership.value;
  const total = rows.reduce((sum, row) => sum + (row.lag ?? 0), 0);
  const open = rows.reduce((sum, row) => sum + (row.open ?? 0), 0);
  const [oldest] = rows
    .filter((row) => row.oldestOpenMs !== null)
    .toSorted((a, b) => (a.oldestOpenMs ?? 0) - (b.oldestOpenMs ?? 0));
  const ageMs = oldest?.oldestOpenMs == null ? 0 : nowMs - oldest.oldestOpenMs;
  const what = `${total} records of inbound to do, ${open} open requests${oldest === undefined ? '' : `, the oldest for ${formatAge(ageMs)} in partition ${oldest.partition}`}`;
  if (ageMs < OLD_REQUEST_MS) return ok('lag', what);
  return {
    code: 'lag',
    level: 'warn',
    what,
    fix: cli('tail', [
      ...['--topic', 'inbound', '--partition', String(oldest?.partition ?? 0)],
      ...['--from', String(oldest?.committed ?? 'start')],
    ]),
  };
}

function poison({ ownership }: DoctorFacts, { cli, fixFor }: Diagnosed): Finding {
  if (!ownership.known) return unknown('poison', ownership.message, fixFor(ownership, 'Read', 'topic'));
  const all = [...ownership.value.facts.values()];
  const repeated = all.filter(({ open }) => (open?.mostAttempts ?? 0) > 1).map(({ partition }) => partition);
  const unreadable = all.filter(({ unreadable: count }) => count > 0).map(({ partition }) => partition);
  if (repeated.length === 0 && unreadable.length === 0)
    return ok('poison', 'no open request was started twice, all events behind the newest checkpoints can be read');
  const what = [
    ...(repeated.length === 0
      ? []
      : [`an open request was started more than once in partition ${repeated.join(', ')}`]),
    ...(unreadable.length === 0 ? [] : [`records cannot be read in partition ${unreadable.join(', ')}`]),
  ].join('; ');
  return {
    code: 'poison',
    level: 'warn',
    what,
    fix: cli('tail', ['--partition', String(repeated[0] ?? unreadable[0] ?? 0), '--from', 'start']),
  };
}

function deadLetters({ deadLetters: asked }: DoctorFacts, { cli, fixFor }: Diagnosed): Finding {
  if (!asked.known) return unknown('dead-letters', asked.message, fixFor(asked, 'Read', 'topic'));
  const { count, newestMs } = asked.value;
  if (count === 0) return ok('dead-letters', 'none');
  return {
    code: 'dead-letters',
    level: 'warn',
    what: `${count} held${newestMs === null ? '' : `, the newest of ${formatTime(newestMs)}`}`,
    fix: cli('tail', ['--topic', 'dead-letter', '--from', 'start']),
  };
}

function ok(code: Finding['code'], what: string): Finding {
  return { code, level: 'ok', what, fix: null };
}

function unknown(code: Finding['code'], what: string, fix: string): Finding {
  return { code, level: 'unknown', what, fix };
}
