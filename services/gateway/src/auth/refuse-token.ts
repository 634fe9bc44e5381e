/** What a client is told of a refused token: code, words and challenge (RFC 6750, RFC 9728). Pure. SPEC: AUTH-CHALLENGE. */
import type { ErrorCode } from '@throughline/protocol';
import { RefusedError } from '../answer-error.ts';
import type { TokenRefusal } from './judge-token.ts';

interface Row {
  readonly code: ErrorCode;
  readonly message: string;
  /** The `error` of the challenge; `null`: nothing was tried yet. */
  readonly error: 'invalid_token' | 'insufficient_scope' | 'invalid_request' | null;
}

const INVALID = { code: 'UNAUTHORIZED', error: 'invalid_token' } as const;

const ROWS: { readonly [R in TokenRefusal]: Row } = {
  'no-token': { code: 'UNAUTHORIZED', error: null, message: 'A bearer token is needed in the Authorization header' },
  malformed: { ...INVALID, message: 'The bearer token cannot be read' },
  'unknown-token': { ...INVALID, message: 'The bearer token is not known' },
  'unknown-issuer': { ...INVALID, message: 'The bearer token is from an issuer that is not trusted here' },
  algorithm: { ...INVALID, message: 'The bearer token is signed by an algorithm that is not taken here' },
  'unknown-key': { ...INVALID, message: 'The bearer token is signed by a key that its issuer does not have' },
  signature: { ...INVALID, message: 'The signature of the bearer token is wrong' },
  type: { ...INVALID, message: 'The bearer token is of a type that is no access token' },
  'sender-constrained': { ...INVALID, message: 'The bearer token is bound to a key, which is not supported here' },
  claims: {
    ...INVALID,
    message: 'The bearer token lacks a claim or has a wrong one; iss, sub, aud and exp are needed',
  },
  expired: { ...INVALID, message: 'The bearer token has expired' },
  'not-yet-valid': { ...INVALID, message: 'The bearer token is not valid yet' },
  audience: { ...INVALID, message: 'The bearer token was issued for another resource' },
  scope: { code: 'INSUFFICIENT_SCOPE', error: 'insufficient_scope', message: 'The bearer token lacks a scope' },
  'keys-unavailable': {
    code: 'AUTH_UNAVAILABLE',
    error: null,
    message: 'The keys of its issuer cannot be had at the moment; try again',
  },
};

export interface Challenge {
  /** Where the metadata of the resource are; `null`: there is no authorization server to find. */
  readonly metadataUrl: string | null;
  readonly requiredScopes: readonly string[];
}

export function tokenRefusal(refusal: TokenRefusal, challenge: Challenge): RefusedError {
  const { code, message, error } = ROWS[refusal];
  return new RefusedError({
    code,
    message,
    data: { reason: refusal },
    ...(code === 'AUTH_UNAVAILABLE'
      ? {}
      : { headers: { 'WWW-Authenticate': formatChallenge(error, message, challenge) } }),
  });
}

/** A token in the URL: refused whatever it is, and wherever tokens are asked for or not. */
export function queryRefusal(challenge: Challenge): RefusedError {
  const message = 'Tokens belong into the Authorization header, never into the URL';
  return new RefusedError({
    code: 'INVALID_REQUEST',
    message,
    headers: { 'WWW-Authenticate': formatChallenge('invalid_request', message, challenge) },
  });
}

function formatChallenge(error: Row['error'], description: string, { metadataUrl, requiredScopes }: Challenge): string {
  const parameters = [
    ...(error === null
      ? []
      : [
          ['error', error],
          ['error_description', description],
        ]),
    ...(metadataUrl === null ? [] : [['resource_metadata', metadataUrl]]),
    ...(requiredScopes.length === 0 ? [] : [['scope', requiredScopes.join(' ')]]),
  ];
  return ['Bearer', parameters.map(([name, value]) => `${name}="${value}"`).join(', ')].join(' ').trim();
}
