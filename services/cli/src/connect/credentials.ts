/** What proves to the server who asks. Nothing of it is ever printed. SPEC: CONNECT-AUTH. */
import { readTextFile } from '../read-text-file.ts';
import { fileProblem } from '../file-problem.ts';

export interface CredentialOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly tokenFile: string | null;
  tell(text: string): void;
}

export interface Credentials {
  /** Asked before each request. */
  headers(): Readonly<Record<string, string>>;
  /** The server refused them. `true`: the file holds another token by now. */
  onUnauthorized(answer: Response): Promise<boolean>;
}

/** Throws an error that says why the file cannot be used. */
export function openCredentials({ headers, tokenFile, tell }: CredentialOptions): Credentials {
  let token = tokenFile === null ? null : readToken(tokenFile);
  const renew = (): boolean => {
    if (tokenFile === null) return false;
    try {
      const now = readToken(tokenFile);
      if (now === token) return false;
      token = now;
      return true;
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error));
      return false;
    }
  };
  return {
    headers: () => (token === null ? headers : { ...headers, Authorization: `Bearer ${token}` }),
    async onUnauthorized({ status }) {
      if (renew()) return true;
      const fix = tokenFile === null ? 'give them by --token-file or --header' : `write a new token to ${tokenFile}`;
      tell(`the server refuses the credentials (${status}); ${fix}`);
      return false;
    },
  };
}

function readToken(file: string): string {
  const text = attempt(file).trim();
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Error(`--token-file ${file}: it must hold one token and nothing else`);
  return text;
}

function attempt(file: string): string {
  try {
    return readTextFile(file);
  } catch (error) {
    throw new Error(`--token-file ${file}: ${fileProblem(error)}`, { cause: error });
  }
}
