/** What to check when a connection does not come about or is closed: by code, since texts change. */
import type { KafkaClientOptions } from './options.ts';

const UNTRUSTED: ReadonlySet<string> = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]);

/** Begins with `; `, or is empty. `isNamed`: the address is one that the user gave, not one that a broker told. */
export function connectionHint(
  error: unknown,
  { ssl, sasl }: Pick<KafkaClientOptions, 'ssl' | 'sasl'>,
  isNamed = false,
): string {
  const code = codeOf(error);
  const hasTls = ssl !== undefined && ssl !== false;
  if (UNTRUSTED.has(code)) return '; give the CA that signed the certificate of the brokers';
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return '; the certificate of the broker has expired';
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return '; the certificate of the broker is for another name: use that name as the address';
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'EPROTO':
      return '; the listener does not speak TLS, or not this version of it';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      if (isNamed) return '; the name has no address here: check how the broker is called';
      return '; the name has no address here: brokers say how they are reached in advertised.listeners';
    case 'ECONNREFUSED':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      if (isNamed) return '; nothing listens there: check that the broker runs, and the port';
      return '; nothing listens there: brokers say how they are reached in advertised.listeners';
    // The broker says nothing more to what it does not expect.
    case '':
    case 'ECONNRESET':
    case 'ECONNCLOSED':
    case 'EPIPE':
      if (hasTls) return sasl === undefined ? '; the listener may want SASL, or a certificate of the client' : '';
      return sasl === undefined ? '; the listener may want TLS or SASL' : '; the listener may want TLS';
    default:
      return '';
  }
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}
