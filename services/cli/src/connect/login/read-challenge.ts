/** What a refusal says of the login that is wanted. SPEC: CONNECT-LOGIN, CONNECT-LOGIN-SCOPE. */
import { computeScopeUnion, extractWWWAuthenticateParams, isStrictScopeSuperset } from '@modelcontextprotocol/client';
import type { Challenge } from './browser-login.ts';

/** `null`: it is not for want of a login, or of a scope that the login does not have. */
export function readChallenge(answer: Response, granted: string | undefined): Challenge | null {
  const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(answer);
  if (answer.status !== 403) return { resourceMetadataUrl, scope };
  if (error !== 'insufficient_scope' || !isStrictScopeSuperset(scope, granted)) return null;
  return { resourceMetadataUrl, scope: computeScopeUnion(granted, scope) };
}
