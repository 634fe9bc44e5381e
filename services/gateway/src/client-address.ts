/**
 * From which address a client speaks, and by which it is counted. What `X-Forwarded-For` says is anybody's word, so it is
 * read only as far as trusted proxies have written it. SPEC: GW-PROXY, GW-PROXY-RANGE, AUTH-LIMIT-ADDRESS.
 */
import { BlockList, isIP, SocketAddress } from 'node:net';

/** Written for the addresses of this machine. */
const LOOPBACK = 'loopback';
const LOOPBACK_RANGES = ['127.0.0.0/8', '::1'];
const BITS = { ipv4: 32, ipv6: 128 } as const;
const MAPPED = /^::ffff:(?=\d+\.)/;

interface Range {
  readonly address: string;
  readonly bits: number;
  readonly family: keyof typeof BITS;
}

/** Whether an address, as {@link plainAddress} writes it, is a proxy's that is believed. */
export type IsTrusted = (address: string) => boolean;

/** Whether `entry` names a peer that can be trusted: an address, a range of them (not of all), or `loopback`. */
export function isTrustable(entry: string): boolean {
  return entry === LOOPBACK || parseRange(entry) !== null;
}

/** @param entries each as {@link isTrustable} takes it; others are a `TypeError`. */
export function trust(entries: readonly string[]): IsTrusted {
  if (entries.length === 0) return () => false;
  // One for each family: a wide range of IPv6 would hold every IPv4 address.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const entry of entries.flatMap((each) => (each === LOOPBACK ? LOOPBACK_RANGES : [each]))) {
    const range = parseRange(entry);
    if (range === null) throw new TypeError(`trustProxy: ${JSON.stringify(entry)} is no address or range`);
    lists[range.family].addSubnet(range.address, range.bits, range.family);
  }
  return (address) => {
    const family = familyOf(address);
    return lists[family].check(address, family);
  };
}

/**
 * The rightmost address of peer and header that is not trusted, or the leftmost of all if each is. Where a trusted proxy
 * wrote something that is no address, it is the address of that proxy; `null` if the peer has none.
 * @param peer the other end of the connection.
 * @param forwardedFor the header's text, each proxy's part to the right of what it got.
 */
export function clientAddress(
  peer: string | undefined,
  forwardedFor: string | undefined,
  isTrusted: IsTrusted,
): string | null {
  let address = plainAddress(peer ?? '');
  if (address === null || forwardedFor === undefined) return address;
  for (const entry of forwardedFor.split(',').reverse()) {
    if (!isTrusted(address)) break;
    const before = plainAddress(entry);
    if (before === null) break;
    address = before;
  }
  return address;
}

/** What counts as one client: an IPv4 address, or the /64 of an IPv6 one, in which a single machine has as many as it likes. */
export function addressGroup(address: string): string {
  if (familyOf(address) === 'ipv4') return address;
  const groupsOf = (side: string): string[] => (side === '' ? [] : side.split(':'));
  const [left = '', right] = address.split('::');
  const head = groupsOf(left);
  const tail = groupsOf(right ?? '');
  const zeros = right === undefined ? 0 : BITS.ipv6 / 16 - head.length - tail.length;
  const groups = [...head, ...Array.from({ length: zeros }, () => '0'), ...tail];
  return `${groups.slice(0, 4).join(':')}::/64`;
}

/** One spelling for each address, without port, brackets and zone; an IPv4 address inside IPv6 is the former. `null`: it is none. */
function plainAddress(text: string): string | null {
  const bare = withoutPort(text.trim());
  switch (isIP(bare)) {
    case 4:
      return bare;
    case 6:
      return new SocketAddress({ address: bare, family: 'ipv6' }).address.replace(MAPPED, '');
    default:
      return null;
  }
}

/** Some proxies write the port of the client as well. */
function withoutPort(text: string): string {
  const match = /^(?:\[([^\]]*)\](?::\d+)?|([^:]*):\d+)$/.exec(text);
  return match?.[1] ?? match?.[2] ?? text;
}

function familyOf(address: string): Range['family'] {
  return address.includes(':') ? 'ipv6' : 'ipv4';
}

function parseRange(entry: string): Range | null {
  const [text = '', size, ...more] = entry.split('/');
  if (isIP(text) === 0 || text.includes('%') || more.length > 0) return null;
  const address = plainAddress(text) ?? text;
  const family = familyOf(address);
  // Of an IPv4 address inside IPv6 the bits before it count as well.
  const before = BITS[familyOf(text)] - BITS[family];
  const bits = size === undefined ? BITS[family] : /^\d{1,3}$/.test(size) ? Number(size) - before : 0;
  return bits >= 1 && bits <= BITS[family] ? { address, bits, family } : null;
}
