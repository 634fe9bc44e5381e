/**
 * A key set as an issuer serves it: what is in it counts by its public half, and an answer in which nothing could check a
 * signature is no key set, whatever its status was. SPEC: AUTH-KEYS, AUTH-KEYS-DOWN.
 */
import { createPublicKey } from 'node:crypto';
import type { JSONWebKeySet } from 'jose';
import { TOKEN_ALGORITHMS } from './auth-config.ts';

type Jwk = JSONWebKeySet['keys'][number];

export interface ReadKeySet {
  readonly set: JSONWebKeySet;
  /** The issuer gives away what it signs with. */
  readonly hasPrivateKey: boolean;
}

/** What only the owner of a key may know (RFC 7518 section 6, RFC 8037). */
const PRIVATE_FIELDS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth'] as const;
const CURVES = ['P-256', 'P-384', 'P-521', 'Ed25519'];
/** Shorter ones are refused by `jose` (RFC 7518 section 3.3). */
const MIN_RSA_BITS = 2048;

/** Throws, without a word of what stands in it, if it is no key set or holds no key that could check a signature. */
export function readKeySet(text: string): ReadKeySet {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The message of the parser would hold a piece of it.
    throw new TypeError('the key set is no JSON');
  }
  if (!isRecord(value) || !Array.isArray(value['keys'])) throw new TypeError('the answer is no key set');
  const given = value['keys'].filter((key) => isRecord(key));
  const keys = given.map((key) => publicHalf(key));
  if (!keys.some((key) => canVerify(key))) throw new TypeError('the key set holds no key that could check a signature');
  return { set: { keys }, hasPrivateKey: given.some((key) => isPrivate(key)) };
}

/** Those that cannot be used stay: a token that names one is signed by a key of its issuer, and is not said to be wrong. */
function publicHalf(key: Readonly<Record<string, unknown>>): Jwk {
  if (!isPrivate(key)) return key;
  // Its operations are those of its private half.
  const hidden: readonly string[] = [...PRIVATE_FIELDS, 'key_ops'];
  return Object.fromEntries(Object.entries(key).filter(([name]) => !hidden.includes(name)));
}

function isPrivate(key: Readonly<Record<string, unknown>>): boolean {
  return PRIVATE_FIELDS.some((field) => Object.hasOwn(key, field));
}

function canVerify(key: Jwk): boolean {
  const { use, key_ops: operations, alg, crv } = key;
  if (use !== undefined && use !== 'sig') return false;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return false;
  if (alg !== undefined && !(TOKEN_ALGORITHMS as readonly unknown[]).includes(alg)) return false;
  if (key.kty !== 'RSA' && !CURVES.includes(String(crv))) return false;
  try {
    const { modulusLength = Infinity } = createPublicKey({ key, format: 'jwk' }).asymmetricKeyDetails ?? {};
    return modulusLength >= MIN_RSA_BITS;
  } catch {
    return false;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
