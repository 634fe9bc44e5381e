/** A token for OAUTHBEARER, fresh for each login. */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { StartError } from './faults.ts';
import { fileProblem } from './file-problem.ts';
import type { TokenSource } from './settings.ts';

const ANSWER_MS = 10_000;
const Answer = z.object({ access_token: z.string().min(1) });

/** Errors: {@link StartError}, which names what to check and never the token. */
export async function fetchKafkaToken(source: TokenSource): Promise<string> {
  if (source.kind === 'file') return await readToken(source.file);
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
  if (response.ok && parsed.success) return parsed.data.access_token;
  throw new StartError(
    `The token endpoint of --kafka-oauth-url gives no token (status ${response.status}); check --kafka-username, the password and --kafka-oauth-scope.`,
  );
}

async function readToken(file: string): Promise<string> {
  let token: string;
  try {
    token = (await readFile(file, 'utf8')).trim();
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
