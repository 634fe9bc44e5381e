/** What a command line asks for of logins. */
import type { GivenClient } from './browser-login.ts';

export interface LoginLine {
  /** `ask`: a person is asked when the server wants a login. `now`: logs in, and ends. `never`: nobody is asked. */
  readonly when: 'ask' | 'now' | 'never';
  /** How long a person may take. */
  readonly withinMs: number;
  /** Opens the browser. */
  readonly doesOpen: boolean;
  readonly clientId: string | null;
  readonly clientSecretFile: string | null;
  /** `null`: what the server asks for. */
  readonly scope: string | null;
  /** `null`: any that is free. */
  readonly redirectPort: number | null;
}

export interface LoginRequest extends Pick<LoginLine, 'withinMs' | 'doesOpen' | 'scope' | 'redirectPort'> {
  readonly serverUrl: URL;
  readonly allowHttp: boolean;
  readonly client: GivenClient | null;
  readonly mayAsk: boolean;
}
