/** A person who logs in with an official client: registration, browser, tokens kept in memory. */
import {
  StreamableHTTPClientTransport as TransportV2,
  UnauthorizedError as UnauthorizedV2,
} from '@modelcontextprotocol/client';
import { UnauthorizedError as UnauthorizedV1 } from '@modelcontextprotocol/sdk/client/auth.js';
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js';
import type { IdentityProvider } from '@throughline/testkit/identity-provider';
import type { ClientLine } from './client-lines.ts';

const REDIRECT = 'http://127.0.0.1:9/callback';

export class Login implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT;
  readonly clientMetadata: OAuthClientMetadata = {
    client_name: 'a client of a test',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  /** Every token that it was given, oldest first. */
  readonly received: OAuthTokens[] = [];
  /** Where the browser was sent last. */
  authorizationUrl: URL | null = null;
  #information: OAuthClientInformationMixed | undefined;
  #verifier = '';

  clientInformation(): OAuthClientInformationMixed | undefined {
    return this.#information;
  }

  saveClientInformation(information: OAuthClientInformationMixed): void {
    this.#information = information;
  }

  tokens(): OAuthTokens | undefined {
    return this.received.at(-1);
  }

  saveTokens(tokens: OAuthTokens): void {
    this.received.push(tokens);
  }

  redirectToAuthorization(url: URL): void {
    this.authorizationUrl = url;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  get accessToken(): string {
    return this.tokens()?.access_token ?? '';
  }
}

/** Finds the provider by the 401 of `url`, registers, logs `user` in and has tokens. */
export async function logIn(line: ClientLine, provider: IdentityProvider, url: string, user: string): Promise<Login> {
  const login = new Login();
  const options = { authProvider: login };
  const transport = line === 'v1' ? new TransportV1(new URL(url), options) : new TransportV2(new URL(url), options);
  await transport.start();
  const ask = { jsonrpc: '2.0', id: 0, method: 'initialize', params: INITIALIZE } as const;
  const refusal: unknown = await transport.send(ask).catch((error: unknown) => error);
  if (!(refusal instanceof UnauthorizedV1 || refusal instanceof UnauthorizedV2) || login.authorizationUrl === null)
    throw new Error(`the client was not sent to a browser: ${String(refusal)}`);
  const back = await provider.authorize(login.authorizationUrl, user);
  const code = back.searchParams.get('code') ?? '';
  await (transport instanceof TransportV1 ? transport.finishAuth(code) : transport.finishAuth(back.searchParams));
  await transport.close();
  return login;
}

const INITIALIZE = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'a client that logs in', version: '1.0.0' },
};
