/** What a command line asks `throughline connect` for. */

import type { LoginLine } from './login/login-request.ts';

interface Shared {
  readonly url: URL;
  /** `null`: the usual one. */
  readonly stateFolder: string | null;
  /** What becomes of the session when the client closes stdin. */
  readonly onClose: 'end' | 'keep';
  /** A session that was left behind is ended, and a new one begun. */
  readonly isFresh: boolean;
  readonly policy: 'strict' | 'compatible';
  readonly giveUpMs: number;
  /** Until `initialize` is answered. */
  readonly startWithinMs: number;
  /** For the answers to calls that are under way when stdin is closed. */
  readonly lingerMs: number;
  readonly tokenFile: string | null;
  /** Credentials may go without TLS. */
  readonly allowHttp: boolean;
  readonly login: LoginLine;
}

/** As it stands on the command line. */
export interface ConnectLine extends Shared {
  /** `null`: the working directory. */
  readonly place: string | null;
  /** Name and value, in which variables of the environment may stand. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** With what the process has. */
export interface ConnectRequest extends Shared {
  /** Tells apart clients of one machine that use the same URL. */
  readonly place: string;
  /** By their names; secrets. */
  readonly headers: Readonly<Record<string, string>>;
}
