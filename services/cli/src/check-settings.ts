/** What single values cannot say: rules over several options, and who can reach the endpoint. */
import type { Fault } from './faults.ts';
import { formatAddress, formatDuration } from './format-value.ts';
import type { Layer } from './layers.ts';
import type { OptionName, OptionUser } from './option-table.ts';
import { describeValue } from './resolve-options.ts';
import type { ResolvedOptions } from './resolve-options.ts';

const MAX_PARTITIONS = 256;
/** More would be a slip: brokers of a cluster are few. */
const MAX_REPLICATION = 32;

/** Rules over several options. */
export function checkTogether(role: OptionUser, layer: Layer, options: ResolvedOptions, faults: Fault[]): void {
  const where = (name: OptionName): string =>
    describeValue(layer.get(name) ?? { text: '', source: 'default', where: `--${name}` }, false);
  const { log, lease, retention, refresh, heartbeat, partitions } = options;
  const deadAfter = options['dead-after'];
  const maxSize = options['max-size'];
  if (log?.kind === 'memory' && role !== 'serve')
    faults.push({
      where: where('log'),
      problem: `other processes cannot see it, ${role === 'operate' ? 'nor can this command' : `so a ${role} on it is alone`}; use sqlite:<file> or kafka://<host>:<port>.`,
    });
  const { listen, admin } = options;
  if (
    (role === 'serve' || role === 'gateway') &&
    listen !== undefined &&
    admin?.port === listen.port &&
    admin.port !== 0 &&
    admin.host === listen.host
  )
    faults.push({
      where: where('admin'),
      problem: `is the address of --listen as well; give them different ports, or --admin off.`,
    });
  if (retention !== undefined && retention < 1000)
    faults.push({ where: where('retention'), problem: 'must be at least 1s.' });
  if (lease !== undefined && lease < 500) faults.push({ where: where('lease'), problem: 'must be at least 500ms.' });
  if (maxSize !== undefined && maxSize < 16 * 1024 ** 2)
    faults.push({ where: where('max-size'), problem: 'must be at least 16MiB, or one large message would fill it.' });
  if (partitions !== undefined && (partitions < 1 || partitions > MAX_PARTITIONS))
    faults.push({ where: where('partitions'), problem: `must be from 1 to ${MAX_PARTITIONS}.` });
  const { replication } = options;
  const inboundRetention = options['inbound-retention'];
  const maxMessage = options['max-message'];
  if (replication !== undefined && (replication < 1 || replication > MAX_REPLICATION))
    faults.push({ where: where('replication'), problem: `must be from 1 to ${MAX_REPLICATION}.` });
  if (inboundRetention !== undefined && retention !== undefined && inboundRetention < retention)
    faults.push({
      where: where('inbound-retention'),
      problem: `must be at least the retention (${formatDuration(retention)}): a request outlives its answer.`,
    });
  if (maxMessage !== undefined && (maxMessage < 64 * 1024 || maxMessage > 1024 ** 3))
    faults.push({ where: where('max-message'), problem: 'must be from 64KiB to 1GiB.' });
  if (refresh !== undefined && retention !== undefined && refresh * 2 > retention)
    faults.push({
      where: where('refresh'),
      problem: `must be at most half of the retention (${formatDuration(retention)}), or idle cursors are evicted.`,
    });
  if (heartbeat !== undefined && deadAfter !== undefined && heartbeat * 2 > deadAfter)
    faults.push({
      where: where('heartbeat'),
      problem: `must be at most half of --dead-after (${formatDuration(deadAfter)}), or living workers count as gone.`,
    });
}

/**
 * On Kafka a gateway needs a secret from its configuration: kept in a topic, everybody who may read that could forge
 * session ids. `serve` on a broker of this machine is a trial, and makes one for itself.
 */
export function checkSecrets(role: OptionUser, layer: Layer, options: ResolvedOptions, faults: Fault[]): void {
  const { log } = options;
  if (
    log?.kind !== 'kafka' ||
    role === 'worker' ||
    role === 'operate' ||
    layer.has('secrets') ||
    layer.has('secrets-file')
  )
    return;
  if (role === 'serve' && log.brokers.every((broker) => isLoopback(withoutBrackets(broker.replace(/:\d+$/, '')))))
    return;
  faults.push({
    where: '--secrets-file',
    problem:
      'a gateway on Kafka needs a secret that signs session ids, the same on every gateway; make one with `throughline secret new > throughline.secrets` and set --secrets-file throughline.secrets, or THROUGHLINE_SECRETS.',
  });
}

/** Tokens of a list have no scopes: whoever sets some means that they are asked for. */
export function checkScopes(layer: Layer, hasIssuers: boolean, faults: Fault[]): void {
  const scopes = layer.get('auth-scopes');
  // One that is faulty is a fault of its own.
  if (scopes === undefined || hasIssuers || layer.has('auth-issuer') || faults.length > 0) return;
  faults.push({
    where: scopes.where,
    problem:
      'nobody is asked for a scope without an issuer, whose tokens have them; set --auth-issuer, or leave it out.',
  });
}

/** Whoever reaches an address without tokens can call every tool, so that has to be said out loud. */
export function checkExposure(
  role: OptionUser,
  layer: Layer,
  options: ResolvedOptions,
  hasTokens: boolean,
  faults: Fault[],
): string[] {
  const { listen } = options;
  if (
    role === 'worker' ||
    role === 'operate' ||
    listen === undefined ||
    isLoopback(listen.host) ||
    // One that is faulty is a fault of its own.
    layer.has('auth-tokens-file') ||
    layer.has('auth-issuer') ||
    hasTokens
  )
    return [];
  const address = formatAddress(listen);
  if (options['allow-anonymous'] === true)
    return [`${address} can be reached from other machines and nobody is asked for a token (--allow-anonymous)`];
  faults.push({
    where: layer.get('listen')?.where ?? '--listen',
    problem: `${address} can be reached from other machines, but nobody is asked for a token; set --auth-issuer or --auth-tokens-file, listen on 127.0.0.1, or say --allow-anonymous.`,
  });
  return [];
}

/**
 * Tokens are issued for the URL that clients know, and what a request says of that is anybody's word. Off this machine
 * whoever listens on the way would have the tokens of a URL without TLS.
 */
export function checkPublicUrl(
  role: OptionUser,
  layer: Layer,
  options: ResolvedOptions,
  asks: { readonly forTokens: boolean; readonly ofIssuers: boolean },
  faults: Fault[],
): { readonly publicUrl?: string } {
  if (role !== 'serve' && role !== 'gateway') return {};
  const { listen } = options;
  const written = layer.get('public-url');
  const url = URL.parse(options['public-url'] ?? '');
  if (
    asks.forTokens &&
    written !== undefined &&
    url?.protocol === 'http:' &&
    !isLoopback(withoutBrackets(url.hostname))
  )
    faults.push({
      where: describeValue(written, false),
      problem:
        'must be https, since clients send tokens to it (RFC 9728); let a proxy speak TLS, or set --tls-cert and --tls-key. Only an address of this machine may be http.',
    });
  if (!asks.ofIssuers || written !== undefined || listen === undefined) return {};
  if (isLoopback(listen.host) && listen.port !== 0)
    return { publicUrl: `${layer.has('tls-cert') ? 'https' : 'http'}://${formatAddress(listen)}` };
  faults.push({
    where: '--public-url',
    problem:
      'is needed with an issuer: the URL under which clients reach this gateway, for example https://mcp.example.com.',
  });
  return {};
}

/** An address of IPv6 stands in brackets where a port may follow. */
function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
