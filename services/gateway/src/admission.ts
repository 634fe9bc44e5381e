/** Who may speak to the endpoint at all: Host, Origin. Pure decisions over header values. SPEC: GW-HOST, GW-ORIGIN, GW-ACCEPT. */
import { isIP } from 'node:net';
import { refuse } from './answer-error.ts';
import type { GatewayConfig } from './config.ts';

const LOOPBACK_NAMES = new Set(['localhost', '127.0.0.1', '[::1]', '::1']);

function isLoopbackName(host: string): boolean {
  return LOOPBACK_NAMES.has(host.toLowerCase()) || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** The name in a Host header, without the port. */
function hostName(header: string): string {
  return header.replace(/:\d+$/, '').toLowerCase();
}

function originHost(origin: string): string | null {
  const url = URL.parse(origin);
  return url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.origin !== origin.toLowerCase()
    ? null
    : url.hostname;
}

/** Where it listens, and the names that are accepted there. */
interface PlaceConfig {
  readonly listen: Pick<GatewayConfig['listen'], 'host'>;
  readonly allowedHosts: readonly string[] | null;
}

type HostConfig = PlaceConfig & Pick<GatewayConfig, 'allowedOrigins'>;

export function isAllowedHost(config: PlaceConfig, header: string | undefined): boolean {
  if (config.allowedHosts === null && !isLoopbackName(config.listen.host)) return true;
  if (header === undefined) return false;
  const name = hostName(header);
  return isLoopbackName(name) || (config.allowedHosts ?? []).some((allowed) => allowed.toLowerCase() === name);
}

/**
 * For health and metrics, as {@link isAllowedHost}, but any IP address and any name without a dot pass: probes use them,
 * and no page of another can come from there, so that none is sent here by DNS rebinding. An absent `Host`, which no
 * browser leaves out, passes too. SPEC: GW-ADMIN-HOST.
 */
export function isAllowedAdminHost(config: PlaceConfig, header: string | undefined): boolean {
  const name = hostName(header ?? '').replace(/^\[(.*)\]$/, '$1');
  return isIP(name) !== 0 || !name.includes('.') || isAllowedHost(config, header);
}

/** An absent Origin is no error: only browsers send one. */
export function isAllowedOrigin(config: HostConfig, origin: string | undefined): boolean {
  if (origin === undefined) return true;
  if (config.allowedOrigins.includes(origin)) return true;
  const host = originHost(origin);
  return host !== null && isLoopbackName(host);
}

/** Refusals: `HOST_REFUSED`, `ORIGIN_REFUSED`. Decided over headers alone, so before a body is read. */
export function checkPlace(config: HostConfig, header: (name: string) => string | undefined): void {
  checkHost(config, header('host'));
  if (!isAllowedOrigin(config, header('origin')))
    refuse('ORIGIN_REFUSED', 'The Origin is not allowed; allow it with --allowed-origins');
}

/** Refusal: `HOST_REFUSED`. */
export function checkHost(config: PlaceConfig, header: string | undefined): void {
  if (!isAllowedHost(config, header))
    refuse('HOST_REFUSED', 'The Host header names a host that is not served here; allow it with --allowed-hosts');
}

const WEIGHT_OF_NONE = /^q=0(?:\.0{0,3})?$/i;

/** Whether an Accept header admits a media type: of the ranges that it falls into the closest one says so (RFC 9110 section 12.5.1). SPEC: GW-ACCEPT. */
export function accepts(header: string | undefined, type: 'application/json' | 'text/event-stream'): boolean {
  const [main = ''] = type.split('/');
  const ranges = [type, `${main}/*`, '*/*'];
  let closest = ranges.length;
  let isAdmitted = false;
  for (const part of (header ?? '').split(',')) {
    const [range = '', ...parameters] = part.split(';').map((piece) => piece.trim());
    const place = ranges.indexOf(range.toLowerCase());
    if (place === -1 || place > closest) continue;
    const isRefused = parameters.some((parameter) => WEIGHT_OF_NONE.test(parameter));
    isAdmitted = place === closest ? isAdmitted || !isRefused : !isRefused;
    closest = place;
  }
  return isAdmitted;
}

export function isJsonContent(header: string | undefined): boolean {
  return header?.split(';')[0]?.trim().toLowerCase() === 'application/json';
}
