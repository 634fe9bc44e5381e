/** What is known of a session: its id, its record, its end, what is open in it, and who serves it. */
import { verifySessionId } from '@throughline/protocol';
import type { Offset, Partition, SessionEndReason, SessionId } from '@throughline/protocol';
import type { InspectSource } from './inspect-source.ts';
import { findSecrets } from './known-secrets.ts';
import { findLiving, readMetaFacts } from './meta-facts.ts';
import { describeOwner } from './owners.ts';
import type { OwnerRow } from './owners.ts';
import { readOne, readPartitionFacts } from './partition-facts.ts';
import { decodeText } from '@throughline/protocol';
import { kcatCommand } from './show-record.ts';
import { formatAge, formatTime } from './time-text.ts';

export interface DescribedSession {
  readonly kind: 'session';
  readonly id: SessionId;
  /** `lives`: it would be served now. */
  readonly state: 'lives' | 'ended' | 'former-epoch' | 'other-epoch' | 'expired' | 'no-partition';
  readonly epochInForce: string | null;
  /** `unchecked`: no secret is known here. `no-match`: no secret, principal and server known here gives this id. */
  readonly mac: 'right' | 'no-match' | 'unchecked';
  readonly principal: string | null;
  readonly end: { readonly reason: SessionEndReason; readonly atMs: number } | null;
  /** Null: it is not in `sessions` (not yet initialized, or forgotten after one maximum life). */
  readonly record: {
    readonly server: string;
    readonly version: string;
    readonly client: unknown;
    readonly capabilities: unknown;
    readonly initialized: boolean;
    readonly logLevel: string | null;
    readonly subscriptionCount: number;
    /** What a client reads may be private. Absent: not asked for. */
    readonly subscriptions?: readonly string[];
  } | null;
  /** Offsets in `inbound` of its requests without an answer; null: not known. */
  readonly open: readonly Offset[] | null;
  readonly owner: OwnerRow | null;
  /** Prints what the log holds of it. */
  readonly kcat: string | null;
}

/** Of tokens nobody is asked for. */
const ANONYMOUS = 'anonymous';
const READ_MS = 30_000;

/** Errors: those of `Log.read`. */
export async function describeSession(
  source: InspectSource,
  text: string,
  id: SessionId,
  withPayload: boolean,
): Promise<DescribedSession> {
  const { log, meta, directory, settings, self } = source;
  const entry = directory.get(id.partition, id.key);
  const record = entry?.record ?? null;
  const kcat = kcatCommand(settings.log, { topic: 'events', partition: id.partition, offset: id.from });
  const { mac, principal } = await checkMac(source, text, record?.server ?? null);
  const { owner, open } = await findOwner(source, id);
  return {
    kind: 'session',
    id,
    state: stateOf(id, {
      epoch: meta.epoch(),
      isFormer: meta.isFormer(id.epoch),
      partitions: log.description.partitions,
      hasEnded: (entry?.end ?? null) !== null,
      ageMs: self.clock.wallMs() - id.createdMs,
      maxLifeMs: settings.gateway.maxLifeMs,
    }),
    epochInForce: meta.epoch(),
    mac,
    principal,
    end: entry?.end ?? null,
    record:
      record === null
        ? null
        : {
            server: record.server,
            version: record.version,
            client: record.initialize.params?.['clientInfo'] ?? null,
            capabilities: record.initialize.params?.['capabilities'] ?? null,
            initialized: record.initialized,
            logLevel: record.logLevel,
            subscriptionCount: record.subscriptions.length,
            ...(withPayload ? { subscriptions: record.subscriptions } : {}),
          },
    open,
    owner,
    kcat: kcat === null ? null : `${kcat.replace(/ -c 1 -e$/, '')} -e -f '%k %o %h %s\\n' | grep '^${id.key} '`,
  };
}

/** Pure. In the order in which a gateway looks. */
function stateOf(
  id: SessionId,
  facts: {
    readonly epoch: string | null;
    readonly isFormer: boolean;
    readonly partitions: number;
    readonly hasEnded: boolean;
    readonly ageMs: number;
    readonly maxLifeMs: number;
  },
): DescribedSession['state'] {
  if (id.partition >= facts.partitions) return 'no-partition';
  if (facts.ageMs > facts.maxLifeMs) return 'expired';
  if (id.epoch !== facts.epoch) return facts.isFormer ? 'former-epoch' : 'other-epoch';
  return facts.hasEnded ? 'ended' : 'lives';
}

async function checkMac(
  { log, settings }: InspectSource,
  text: string,
  server: string | null,
): Promise<Pick<DescribedSession, 'mac' | 'principal'>> {
  const { secrets } = await findSecrets(settings, log);
  if (secrets.length === 0) return { mac: 'unchecked', principal: null };
  const principals = [ANONYMOUS, ...(settings.gateway.tokens ?? []).map(({ principal }) => principal)];
  const servers = server === null ? settings.gateway.servers : [server];
  for (const principal of new Set(principals))
    for (const each of servers)
      if (verifySessionId(text, { principal, server: each }, secrets) !== null) return { mac: 'right', principal };
  return { mac: 'no-match', principal: null };
}

async function findOwner(
  { log, meta, settings, self }: InspectSource,
  id: SessionId,
): Promise<{ readonly owner: OwnerRow | null; readonly open: readonly Offset[] | null }> {
  const { partition } = id;
  const epoch = meta.epoch();
  if (epoch === null || partition >= log.description.partitions) return { owner: null, open: null };
  const { clock, signal } = self;
  const metaFacts = await readMetaFacts(log, signal);
  const finding = findLiving(log, clock, metaFacts, settings.gateway.deadAfterMs, signal);
  finding.catch(() => undefined);
  const facts = await readPartitionFacts({ log, clock, meta, epoch, timeoutMs: READ_MS, signal }, partition);
  const { names: living } = await finding;
  const owner = describeOwner(partition, facts, { meta: metaFacts, living, committed: null });
  if (facts.open === null) return { owner, open: null };
  const open: Offset[] = [];
  for (const offset of facts.open.offsets)
    if ((await keyAt(log, partition, offset, signal)) === id.key) open.push(offset);
  return { owner, open };
}

async function keyAt(
  log: InspectSource['log'],
  partition: Partition,
  offset: Offset,
  signal: AbortSignal,
): Promise<string | null> {
  const record = await readOne(log, { topic: 'inbound', partition }, offset, signal);
  return record?.key == null ? null : decodeText(record.key);
}

const STATES: { readonly [S in DescribedSession['state']]: string } = {
  lives: 'lives: requests are served',
  ended: 'has ended: requests get 404',
  'former-epoch': 'has ended with its epoch: requests get 404, a resume of a call an error in its stream',
  'other-epoch': 'names an epoch that this log does not know: it was made on another log',
  expired: 'is past its maximum life: requests get 404',
  'no-partition': 'names a partition that this log does not have',
};

const LIVES_UNCHECKED = 'has not ended; whether requests are served depends on the signature';

const MACS: { readonly [S in DescribedSession['mac']]: string } = {
  right: 'right',
  'no-match':
    'no secret, principal and server known here gives this id: it is of a subject of an authorization server, whom no configuration names, or gateways configured like this refuse it; name what the gateways have: --secrets-file, --auth-tokens-file, the servers',
  unchecked: 'not checked: no secret is configured here; name it with --secrets-file',
};

export function renderSession(session: DescribedSession, nowMs: number): string {
  const { id, state, epochInForce, mac, principal, end, record, open, owner, kcat } = session;
  const lines = [
    `session    ${state === 'lives' && mac !== 'right' ? LIVES_UNCHECKED : STATES[state]}`,
    `epoch      ${id.epoch}${id.epoch === epochInForce ? ', in force' : `; in force is ${epochInForce ?? 'none'}`}`,
    `partition  ${id.partition}; its events lie at offset ${id.from} and above`,
    `created    ${formatTime(id.createdMs)}, ${formatAge(nowMs - id.createdMs)} ago`,
    `key        ${id.key}`,
    `signature  ${MACS[mac]}${principal === null ? '' : `; principal ${principal}`}`,
    ...(end === null ? [] : [`ended      ${formatTime(end.atMs)}, because: ${end.reason}`]),
    ...(record === null
      ? ['record     none in sessions: not initialized, or forgotten since']
      : [
          `server     ${record.server}, MCP ${record.version}${record.initialized ? '' : ', not yet initialized'}`,
          `client     ${JSON.stringify(record.client)}, capabilities ${JSON.stringify(record.capabilities)}`,
          ...(record.logLevel === null ? [] : [`log level  ${record.logLevel}`]),
          ...(record.subscriptionCount === 0
            ? []
            : [`subscribed ${record.subscriptions?.join(', ') ?? `${record.subscriptionCount} resources`}`]),
        ]),
    `open       ${open === null ? 'not known' : open.length === 0 ? 'no requests' : `requests at inbound ${open.join(', ')}`}`,
    `owner      ${owner === null ? 'not known' : `${owner.worker ?? 'none'} (${owner.state})`}`,
    ...(kcat === null ? [] : [`kcat       ${kcat}`]),
  ];
  return `${lines.join('\n')}\n`;
}
