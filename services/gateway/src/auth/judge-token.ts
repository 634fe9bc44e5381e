/** Who a bearer token speaks for, or why it is refused: pure, over what was read from it. SPEC: AUTH-AUDIENCE, AUTH-SCOPE, AUTH-TIME, AUTH-PRINCIPAL. */

/** Whom a request speaks for. */
export interface Caller {
  /** What sessions are bound to. The same for every token of a subject of an issuer. */
  readonly principal: string;
  /** Wall-clock milliseconds from which on the same token is refused; `null`: never. */
  readonly untilMs: number | null;
  /** Fires when its token is taken from the list; undefined: it stands in none. */
  readonly revoked?: AbortSignal | undefined;
}

/** Everybody, where nobody is asked for a token. */
export const ANONYMOUS_PRINCIPAL = 'anonymous';

/** Why no caller is known. What a client is told of each stands in `refuse-token.ts`. */
export type TokenRefusal =
  | 'no-token'
  | 'malformed'
  | 'unknown-token'
  | 'unknown-issuer'
  | 'algorithm'
  | 'unknown-key'
  | 'signature'
  | 'type'
  | 'sender-constrained'
  | 'claims'
  | 'expired'
  | 'not-yet-valid'
  | 'audience'
  | 'scope'
  | 'keys-unavailable';

export type TokenVerdict =
  { readonly ok: true; readonly caller: Caller } | { readonly ok: false; readonly refusal: TokenRefusal };

/** What stands in a JWT whose signature is right and whose issuer is one of ours. */
export interface VerifiedToken {
  readonly issuer: string;
  readonly subject: string;
  readonly audience: readonly string[];
  readonly scopes: readonly string[];
  /** Wall-clock milliseconds. */
  readonly expiresAtMs: number;
}

export interface TokenRules {
  /** One of them must be in the audience. */
  readonly audience: readonly string[];
  /** All of them must be among the scopes. */
  readonly requiredScopes: readonly string[];
  readonly clockToleranceMs: number;
}

/** Asked on every request: time passes, and each server is an audience of its own. */
export function judgeToken(token: VerifiedToken, rules: TokenRules, nowMs: number): TokenVerdict {
  const untilMs = token.expiresAtMs + rules.clockToleranceMs;
  if (nowMs >= untilMs) return refused('expired');
  const isForUs = token.audience.some((each) => rules.audience.includes(withoutSlash(each)));
  if (!isForUs) return refused('audience');
  if (!rules.requiredScopes.every((scope) => token.scopes.includes(scope))) return refused('scope');
  return { ok: true, caller: { principal: principalOf(token), untilMs } };
}

export function refused(refusal: TokenRefusal): TokenVerdict {
  return { ok: false, refusal };
}

/** Unambiguous, whatever stands in the parts; no name of a token file can look like it, since those hold no colon. */
function principalOf({ issuer, subject }: VerifiedToken): string {
  return JSON.stringify([issuer, subject]);
}

/** `https://mcp.example.com/` and `https://mcp.example.com` are one resource: clients write both. */
export function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url;
}

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i;

/** The token of an Authorization header; `null`: it holds none, whatever it holds. */
export function readBearer(authorization: string | undefined): string | null {
  return BEARER.exec(authorization ?? '')?.[1] ?? null;
}

/** Whether a URL carries a token where logs, histories and referrers would keep it (RFC 6750 section 2.3). SPEC: AUTH-QUERY. */
export function hasTokenInQuery(url: string): boolean {
  const query = url.indexOf('?');
  return query !== -1 && new URLSearchParams(url.slice(query + 1)).has('access_token');
}
