/** A JWT's signature and standing claims, checked by `jose`. SPEC: AUTH-JWT, AUTH-ALGORITHM, AUTH-TYPE. */
import { decodeJwt, errors, jwtVerify } from 'jose';
import type { CryptoKey, JWTPayload, JWTVerifyGetKey, JWTVerifyResult } from 'jose';
import { refused } from './judge-token.ts';
import type { TokenRefusal, TokenVerdict, VerifiedToken } from './judge-token.ts';

export interface TokenIssuer {
  readonly issuer: string;
  readonly algorithms: readonly string[];
  /** Rejects as `jose` does, or with another error where there is no key that can be used. */
  readonly findKey: JWTVerifyGetKey;
}

export type Verified = { readonly ok: true; readonly token: VerifiedToken } | Extract<TokenVerdict, { ok: false }>;

/** Access tokens (RFC 9068), and what writes no type. Others are meant for something else: `logout+jwt`, `dpop+jwt`. */
const TYPES = new Set(['jwt', 'at+jwt', 'application/at+jwt']);
/** Of a token that names no key, where several fit. */
const MAX_KEYS_TRIED = 8;

/** Never rejects for what stands in the token. */
export async function verifyToken(
  text: string,
  issuers: ReadonlyMap<string, TokenIssuer>,
  { nowMs, clockToleranceMs }: { readonly nowMs: number; readonly clockToleranceMs: number },
): Promise<Verified> {
  const claimed = issuerOf(text);
  if (claimed === null) return no('malformed');
  const issuer = issuers.get(claimed);
  if (issuer === undefined) return no('unknown-issuer');
  const verify = (key: JWTVerifyGetKey | CryptoKey): Promise<JWTVerifyResult> =>
    // The same function, of which `jose` declares one form for keys and one for those who find them.
    jwtVerify(text, key as JWTVerifyGetKey, {
      issuer: issuer.issuer,
      algorithms: [...issuer.algorithms],
      requiredClaims: ['exp', 'sub', 'aud'],
      clockTolerance: clockToleranceMs / 1000,
      currentDate: new Date(nowMs),
    });
  let verified: JWTVerifyResult;
  try {
    verified = await verifyByAny(verify, issuer.findKey);
  } catch (error) {
    return no(refusalOf(error));
  }
  return readVerified(verified);
}

/** A token without a key id may fit several keys: each is tried. */
async function verifyByAny(
  verify: (key: JWTVerifyGetKey | CryptoKey) => Promise<JWTVerifyResult>,
  findKey: JWTVerifyGetKey,
): Promise<JWTVerifyResult> {
  try {
    return await verify(findKey);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    let tried = 0;
    let last: unknown = error;
    for await (const key of error) {
      if (++tried > MAX_KEYS_TRIED) break;
      try {
        return await verify(key);
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
        last = failure;
      }
    }
    throw last;
  }
}

function issuerOf(text: string): string | null {
  try {
    return decodeJwt(text).iss ?? null;
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}

function readVerified({ payload, protectedHeader }: JWTVerifyResult): Verified {
  // As unknown as it is: the signature says who wrote it, and not that it has the types which `jose` declares.
  const typ: unknown = protectedHeader.typ;
  if (typ !== undefined && !(typeof typ === 'string' && TYPES.has(typ.toLowerCase()))) return no('type');
  // It is worth nothing without the proof of a key, which is not asked for here: taken as a bearer token it could be stolen.
  if (payload['cnf'] !== undefined) return no('sender-constrained');
  const { iss, sub, aud, exp }: Record<string, unknown> = payload;
  const audience = typeof aud === 'string' ? [aud] : aud;
  if (typeof iss !== 'string' || typeof sub !== 'string' || sub === '') return no('claims');
  if (typeof exp !== 'number' || !isListOfTexts(audience)) return no('claims');
  const token = { issuer: iss, subject: sub, audience, scopes: scopesOf(payload), expiresAtMs: exp * 1000 };
  return { ok: true, token };
}

function isListOfTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}

/** RFC 9068 writes `scope`, blanks between; some providers write `scp`, or a list. */
function scopesOf(payload: JWTPayload): readonly string[] {
  return [payload['scope'], payload['scp']].flatMap((claim) => {
    if (typeof claim === 'string') return claim.split(' ').filter((scope) => scope !== '');
    return Array.isArray(claim) ? claim.filter((scope) => typeof scope === 'string') : [];
  });
}

const REFUSALS: Readonly<Record<string, TokenRefusal>> = {
  [errors.JWTExpired.code]: 'expired',
  [errors.JOSEAlgNotAllowed.code]: 'algorithm',
  [errors.JOSENotSupported.code]: 'algorithm',
  [errors.JWKSNoMatchingKey.code]: 'unknown-key',
  [errors.JWSSignatureVerificationFailed.code]: 'signature',
  [errors.JWTClaimValidationFailed.code]: 'claims',
};

function refusalOf(error: unknown): TokenRefusal {
  // Of what is no error of a token, all is one of a key: there is none, or it cannot be used, as a short one.
  if (!(error instanceof errors.JOSEError)) return 'keys-unavailable';
  if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'nbf' && error.reason === 'check_failed')
    return 'not-yet-valid';
  return REFUSALS[error.code] ?? 'malformed';
}

function no(refusal: TokenRefusal): Extract<TokenVerdict, { ok: false }> {
  return refused(refusal) as Extract<TokenVerdict, { ok: false }>;
}
