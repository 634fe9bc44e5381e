/** What proves to the server who asks. Nothing of it is ever printed. SPEC: CONNECT-AUTH. */
import { readTextFile } from '../read-text-file.ts';
import { fileProblem } from '../file-problem.ts';

/** What the transport is given. */
export interface Credentials {
  /** Asked before each request. */
  headers(): Readonly<Record<string, string>>;
  /** The server refused what was sent. `true`: there are others by now. Rejects where that cannot be said now. */
  onUnauthorized(answer: Response, sent: Headers): Promise<boolean>;
  /** The same, without asking a person. */
  renewQuietly(answer: Response, sent: Headers): Promise<boolean>;
  /** A person is asked at the moment. */
  readonly isWaiting: boolean;
  /** Why there is no login, and what to do. */
  readonly problem: string | null;
  /** Resolves when nothing is under way any more: whoever wants that has stopped it. */
  settled(): Promise<unknown>;
}

export interface CredentialOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly tokenFile: string | null;
  tell(text: string): void;
}

/** Of those that are given. Throws an error that says why the file cannot be used. */
export function openCredentials({ headers, tokenFile, tell }: CredentialOptions): Credentials {
  const where = `--token-file ${tokenFile}`;
  let token = tokenFile === null ? null : readSecret(where, tokenFile);
  const renew = (): boolean => {
    if (tokenFile === null) return false;
    try {
      const now = readSecret(where, tokenFile);
      if (now === token) return false;
      token = now;
      return true;
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error));
      return false;
    }
  };
  const onUnauthorized = async ({ status }: Response): Promise<boolean> => {
    if (renew()) return true;
    const fix = tokenFile === null ? 'give them by --token-file or --header' : `write a new token to ${tokenFile}`;
    tell(`the server refuses the credentials (${status}); ${fix}`);
    return false;
  };
  return {
    headers: () => (token === null ? headers : { ...headers, Authorization: `Bearer ${token}` }),
    onUnauthorized,
    renewQuietly: onUnauthorized,
    isWaiting: false,
    problem: null,
    settled: () => Promise.resolve(),
  };
}

/** Throws an error that says why the file cannot be used. @param where the option that names it. */
export function readSecret(where: string, file: string): string {
  const text = attempt(where, file).trim();
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Error(`${where}: it must hold one token and nothing else`);
  return text;
}

function attempt(where: string, file: string): string {
  try {
    return readTextFile(file);
  } catch (error) {
    throw new Error(`${where}: ${fileProblem(error)}`, { cause: error });
  }
}
