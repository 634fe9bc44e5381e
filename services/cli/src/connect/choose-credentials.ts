/** Which credentials a command line means: those that it gives, or those of a login. SPEC: CONNECT-AUTH, CONNECT-LOGIN. */
import path from 'node:path';
import type { ConnectProcess } from './connect-process.ts';
import type { ConnectRequest } from './connect-request.ts';
import { openCredentials, readSecret } from './credentials.ts';
import type { Credentials } from './credentials.ts';
import { openLogin } from './login/login-credentials.ts';
import type { LoginCredentials } from './login/login-credentials.ts';
import { LoginStore } from './login/login-store.ts';
import { readLines } from './read-lines.ts';

export interface ConnectTools {
  readonly request: ConnectRequest;
  readonly self: ConnectProcess;
  /** Where things are kept. */
  readonly folder: string;
  /** The end of the process. */
  readonly signal: AbortSignal;
  tell(text: string): void;
}

/** A file that is named and cannot be used is told in words. */
export type Chosen<C extends Credentials> =
  { readonly ok: true; readonly credentials: C } | { readonly ok: false; readonly problem: string };

export async function chooseCredentials(tools: ConnectTools): Promise<Chosen<Credentials>> {
  const { headers, tokenFile } = tools.request;
  const isGiven = tokenFile !== null || Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
  if (!isGiven) return await openLoginOf(tools);
  return attempt(() => openCredentials({ headers, tokenFile, tell: tools.tell }));
}

/** @param mayPaste whether stdin is a person's, and not the client's. */
export async function openLoginOf(tools: ConnectTools, mayPaste = false): Promise<Chosen<LoginCredentials>> {
  const { request, self, folder, tell, signal } = tools;
  const { url, login, headers, allowHttp } = request;
  const { clientId, clientSecretFile } = login;
  const secret = attempt(() =>
    clientSecretFile === null ? null : readSecret(`--client-secret-file ${clientSecretFile}`, clientSecretFile),
  );
  if (!secret.ok) return secret;
  const credentials = await openLogin({
    request: {
      ...login,
      serverUrl: url,
      allowHttp,
      client: clientId === null ? null : { id: clientId, secret: secret.credentials },
      mayAsk: login.when !== 'never',
    },
    store: new LoginStore(path.join(folder, 'logins'), `${url.href}\n${clientId ?? ''}`, tell),
    headers,
    signal,
    tell,
    pasted: mayPaste && self.isInteractive ? linesOf(self.input) : null,
    show(page) {
      self.err(`${page.href}\n`);
    },
  });
  return { ok: true, credentials };
}

function attempt<T>(
  open: () => T,
): { readonly ok: true; readonly credentials: T } | { readonly ok: false; readonly problem: string } {
  try {
    return { ok: true, credentials: open() };
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : String(error) };
  }
}

const MAX_PASTED_BYTES = 64 * 1024;

async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  for await (const line of readLines(input, MAX_PASTED_BYTES)) if (line.kind === 'line') yield line.text;
}
