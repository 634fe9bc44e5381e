/** Why there is no login. Branch on `code`. SPEC: CONNECT-LOGIN-FAILS. */

/**
 * - `NOT_OFFERED`: the server names no authorization server, so a login is no way in.
 * - `NOBODY_CAME`: no person has logged in before the deadline.
 * - `REFUSED`: the person, or the authorization server, has said no.
 * - `MISMATCH`: an answer is of another authorization server, or for another server, than asked.
 * - `FAILED`: it cannot go on, and trying again changes nothing.
 * - `UNAVAILABLE`: somebody is out of reach; it may go on later.
 * - `STOPPED`: nobody waits for it any more.
 */
export type LoginTrouble =
  'NOT_OFFERED' | 'NOBODY_CAME' | 'REFUSED' | 'MISMATCH' | 'FAILED' | 'UNAVAILABLE' | 'STOPPED';

export class LoginError extends Error {
  override readonly name = 'LoginError';
  readonly code: LoginTrouble;

  constructor(code: LoginTrouble, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
