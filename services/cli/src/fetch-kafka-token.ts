/** Tokens for OAUTHBEARER: of a file read anew for each login, of a token endpoint kept for most of their life. */
import { systemClock } from '@throughline/log';
import { z } from 'zod';
import { StartError } from './faults.ts';
import { readTextFile } from './read-text-file.ts';
import { fileProblem } from './file-problem.ts';
import type { TokenSource } from './settings.ts';
import { createTokenCache } from './token-cache.ts';
import type { FetchedToken } from './token-cache.ts';

const ANSWER_MS = 10_000;
const Answer = z.object({
  access_token: z.string().min(1),
  // Some issuers write the number as text; one that cannot be read is as good as none.
  expires_in: z.coerce.number().positive().optional().catch(undefined),
});

type Endpoint = Extract<TokenSource, { readonly kind: 'client-credentials' }>;

/** By the source in the settings, of which a process has one: all its connections share the token. */
const caches = new WeakMap<Endpoint, () => Promise<string>>();

/** Errors: {@link StartError}, which names what to check and never the token. */
export async function fetchKafkaToken(source: TokenSource): Promise<string> {
  if (source.kind === 'file') return readToken(source.file);
  const cached = caches.get(source) ?? createTokenCache(() => askEndpoint(source), systemClock);
  caches.set(source, cached);
  return await cached();
}

async function askEndpoint(source: Endpoint): Promise<FetchedToken> {
  const { url, clientId, clientSecret, scope } = source;
  // RFC 6749 section 2.3.1: each part is form-encoded before the two are joined.
  const basic = Buffer.from(`${formEncode(clientId)}:${formEncode(clientSecret)}`).toString('base64');
  const body = new URLSearchParams({ grant_type: 'client_credentials', ...(scope === null ? {} : { scope }) });
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}`, accept: 'application/json' },
      body,
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    text = await response.text();
  } catch (error) {
    throw new StartError(`The token endpoint of --kafka-oauth-url does not answer.`, error);
  }
  const parsed = Answer.safeParse(parseJson(text));
  if (response.ok && parsed.success) {
    const { access_token: token, expires_in: seconds } = parsed.data;
    return { token, lifeMs: seconds === undefined ? null : seconds * 1000 };
  }
  throw new StartError(
    `The token endpoint of --kafka-oauth-url gives no token (status ${response.status}); check --kafka-username, the password and --kafka-oauth-scope.`,
  );
}

function readToken(file: string): string {
  let token: string;
  try {
    token = readTextFile(file).trim();
  } catch (error) {
    throw new StartError(`The file of --kafka-token-file cannot be used: ${fileProblem(error)}.`, error);
  }
  if (token === '') throw new StartError('The file of --kafka-token-file is empty.');
  return token;
}

function formEncode(text: string): string {
  return new URLSearchParams({ text }).toString().slice('text='.length);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
