/** New tokens for a kept login, without a person. SPEC: CONNECT-LOGIN-REFRESH. */
import {
  discoverAuthorizationServerMetadata,
  OAuthError,
  OAuthErrorCode,
  refreshAuthorization,
} from '@modelcontextprotocol/client';
import type { CarefulFetch } from './careful-fetch.ts';
import { LoginError } from './login-error.ts';
import { readTokens } from './login-record.ts';
import type { LoginRecord } from './login-record.ts';
import { troubleOf } from './trouble-of.ts';

const CLIENT_UNKNOWN: readonly string[] = [OAuthErrorCode.InvalidClient, OAuthErrorCode.UnauthorizedClient];

/**
 * The record with new tokens; without any where they are refused for good, and without the registration where that is
 * not known any more. Rejects with a {@link LoginError}.
 */
export async function refreshLogin(kept: LoginRecord, fetchFn: CarefulFetch): Promise<LoginRecord> {
  const { authorizationServerUrl, client, resource, tokens } = kept;
  if (client === null || tokens?.refresh_token === undefined) return { ...kept, tokens: null };
  try {
    // Only who has given the token is asked, whatever the MCP server says now.
    const metadata = await discoverAuthorizationServerMetadata(authorizationServerUrl, { fetchFn });
    if (metadata === undefined)
      throw new LoginError('UNAVAILABLE', `${authorizationServerUrl} does not say how to ask for tokens`);
    const renewed = await refreshAuthorization(authorizationServerUrl, {
      metadata,
      clientInformation: client,
      refreshToken: tokens.refresh_token,
      fetchFn,
      ...(resource === null ? {} : { resource }),
    });
    return { ...kept, tokens: readTokens({ scope: tokens.scope, ...renewed }) };
  } catch (error) {
    const trouble = troubleOf(error);
    if (trouble.code !== 'REFUSED') throw trouble;
    const isForgotten = error instanceof OAuthError && CLIENT_UNKNOWN.includes(error.code);
    return { ...kept, tokens: null, client: isForgotten ? null : client };
  }
}
