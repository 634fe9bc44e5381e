/**
 * The credentials of a login: what is kept is used, what is refused is renewed, once for all requests and all processes
 * that share it; a person is asked at most once, until the login has worked again. The SDK is loaded when it is needed.
 * SPEC: CONNECT-LOGIN, CONNECT-LOGIN-REFRESH, CONNECT-LOGIN-SHARED, CONNECT-LOGIN-ONCE.
 */
import type { Credentials } from '../credentials.ts';
import { isLoopback } from '../is-loopback.ts';
import type { BrowserLogin, Challenge } from './browser-login.ts';
import { makeCarefulFetch } from './careful-fetch.ts';
import { LoginError } from './login-error.ts';
import type { LoginRecord } from './login-record.ts';
import type { LoginRequest } from './login-request.ts';
import type { LoginStore } from './login-store.ts';
import { openPage } from './open-page.ts';

export interface LoginOptions {
  readonly request: LoginRequest;
  readonly store: LoginStore;
  /** Other headers of the person. */
  readonly headers: Readonly<Record<string, string>>;
  /** The end of the process. */
  readonly signal: AbortSignal;
  readonly pasted: AsyncIterable<string> | null;
  tell(text: string): void;
  /** Writes an address as it is, on a line of its own. */
  show(url: URL): void;
}

/** For another process that renews; it may wait for its person. */
const QUIET_LOCK_MS = 15_000;
const MORE_THAN_A_LOGIN_MS = 30_000;

/** What a person does about a login that is missing. */
function loginCommand(url: URL): string {
  return `throughline connect ${url.href} --login now`;
}

export async function openLogin(options: LoginOptions): Promise<LoginCredentials> {
  const record = await options.store.load();
  if (record !== null) await options.store.touch();
  return new LoginCredentials(options, record);
}

export class LoginCredentials implements Credentials {
  readonly #options: LoginOptions;
  #record: LoginRecord | null;
  readonly #flights = new Map<'quiet' | 'loud', Promise<boolean>>();
  #problem: string | null = null;
  /** Nobody is asked any more. */
  #hasGivenUp = false;

  constructor(options: LoginOptions, record: LoginRecord | null) {
    this.#options = options;
    this.#record = record;
  }

  /** Why there is no login; `null` also where none is wanted. */
  get problem(): string | null {
    return this.#problem;
  }

  /** A person is asked, or another process asks one. */
  get isWaiting(): boolean {
    return this.#flights.has('loud');
  }

  settled(): Promise<unknown> {
    return Promise.allSettled(this.#flights.values());
  }

  headers(): Readonly<Record<string, string>> {
    const { headers } = this.#options;
    const token = this.#record?.tokens?.access_token;
    return token === undefined ? headers : { ...headers, Authorization: `Bearer ${token}` };
  }

  /** Rejects with a {@link LoginError} (`UNAVAILABLE`, `STOPPED`). */
  onUnauthorized(answer: Response, sent: Headers): Promise<boolean> {
    return this.#renewOnce('loud', answer, sent);
  }

  /** The same without a person. */
  renewQuietly(answer: Response, sent: Headers): Promise<boolean> {
    return this.#renewOnce('quiet', answer, sent);
  }

  /** Asks a person, whatever is kept. */
  async logInAnew(answer: Response): Promise<boolean> {
    const { store, request, signal } = this.#options;
    const soon = AbortSignal.any([signal, AbortSignal.timeout(request.withinMs + MORE_THAN_A_LOGIN_MS)]);
    const lock = await store.lock(soon, () => Promise.resolve(false));
    if (lock === null) throw new LoginError('UNAVAILABLE', 'another process is at a login');
    try {
      return await this.#ask(answer, false);
    } finally {
      await lock.release();
    }
  }

  async #renewOnce(how: 'quiet' | 'loud', answer: Response, sent: Headers): Promise<boolean> {
    const refused = sent.get('authorization')?.replace(/^Bearer /, '') ?? null;
    if (this.#hasOther(this.#record, refused)) return true;
    // Two at a time would use the same refresh token twice, which ends the login.
    if (how === 'loud') await this.#flights.get('quiet')?.catch(() => false);
    const under = this.#flights.get(how);
    if (under !== undefined) return await under;
    const flight = this.#renew(how, answer, refused).finally(() => this.#flights.delete(how));
    this.#flights.set(how, flight);
    return await flight;
  }

  #hasOther(record: LoginRecord | null, refused: string | null): boolean {
    const token = record?.tokens?.access_token ?? null;
    return token !== null && token !== refused;
  }

  async #renew(how: 'quiet' | 'loud', answer: Response, refused: string | null): Promise<boolean> {
    const { store, request, signal } = this.#options;
    // Another process may have done it, or a person in a terminal.
    if (await this.#takeOther(refused)) return true;
    const wantsMore = answer.status === 403;
    const mayAsk = how === 'loud' && !this.#hasGivenUp;
    const canRefresh = !wantsMore && this.#record?.tokens?.refresh_token !== undefined;
    if (!canRefresh && !mayAsk) return false;
    const lockMs = how === 'quiet' ? QUIET_LOCK_MS : request.withinMs + MORE_THAN_A_LOGIN_MS;
    const soon = AbortSignal.any([signal, AbortSignal.timeout(lockMs)]);
    const lock = await store.lock(soon, () => this.#takeOther(refused));
    if (lock === null) {
      if (this.#hasOther(this.#record, refused)) return true;
      throw new LoginError('UNAVAILABLE', 'another process still renews the login');
    }
    try {
      if (await this.#takeOther(refused)) return true;
      if (canRefresh && (await this.#refresh())) return true;
      return mayAsk && (await this.#ask(answer, wantsMore));
    } finally {
      await lock.release();
    }
  }

  /** Whether another token than the one that was refused is kept by now. */
  async #takeOther(refused: string | null): Promise<boolean> {
    const kept = await this.#options.store.load();
    if (kept === null || !this.#hasOther(kept, refused)) return false;
    this.#use(kept);
    return true;
  }

  #use(record: LoginRecord): void {
    this.#record = record;
    if (record.tokens === null) return;
    this.#problem = null;
    this.#hasGivenUp = false;
  }

  async #refresh(): Promise<boolean> {
    const { store, tell } = this.#options;
    // Of the file: the token of this process may have been replaced, and be worth nothing.
    const kept = (await store.load()) ?? this.#record;
    if (kept === null) return false;
    const { refreshLogin } = await import('./refresh-login.ts');
    const renewed = await refreshLogin(kept, this.#fetch());
    this.#use(renewed);
    await store.save(renewed);
    if (renewed.tokens === null) tell('the kept login has ended');
    return renewed.tokens !== null;
  }

  /** Asks a person. `false`: there is no login, and why is told. */
  async #ask(answer: Response, wantsMore: boolean): Promise<boolean> {
    const { request, store, tell } = this.#options;
    const { serverUrl, allowHttp } = request;
    if (!request.mayAsk) return this.#giveUp(`the server asks for a login; ${this.#fix()}`);
    if (serverUrl.protocol === 'http:' && !isLoopback(serverUrl.hostname) && !allowHttp)
      return this.#giveUp('the server has no TLS, so nobody is asked to log in there; use https, or add --allow-http');
    const { readChallenge } = await import('./read-challenge.ts');
    const challenge = readChallenge(answer, this.#record?.tokens?.scope);
    if (challenge === null)
      return this.#giveUp(wantsMore ? `the server refuses what is asked for (${answer.status})` : null);
    try {
      const { logInByBrowser } = await import('./browser-login.ts');
      const record = await logInByBrowser(this.#browserLogin(challenge));
      this.#use(record);
      await store.save(record);
      tell('logged in');
      return true;
    } catch (error) {
      if (!(error instanceof LoginError)) throw error;
      if (error.code === 'UNAVAILABLE' || error.code === 'STOPPED') throw error;
      if (error.code === 'NOT_OFFERED') return this.#giveUp(null);
      // The registration may be what is wrong: the page of the authorization server would have said so.
      if (error.code === 'NOBODY_CAME' && this.#record !== null) await store.save({ ...this.#record, client: null });
      return this.#giveUp(`${error.message}; ${this.#fix()}`);
    }
  }

  /** `null`: a login would change nothing. */
  #giveUp(problem: string | null): false {
    this.#hasGivenUp = true;
    this.#problem = problem;
    this.#options.tell(problem ?? 'the server refuses the credentials; give them by --token-file or --header');
    return false;
  }

  #fix(): string {
    return `log in by ${loginCommand(this.#options.request.serverUrl)}`;
  }

  #browserLogin(challenge: Challenge): BrowserLogin {
    const { request, signal, tell, show, pasted } = this.#options;
    const { serverUrl, allowHttp, client, redirectPort, withinMs, doesOpen } = request;
    return {
      serverUrl,
      allowHttp,
      client,
      redirectPort,
      withinMs,
      signal,
      pasted,
      tell,
      challenge: request.scope === null ? challenge : { ...challenge, scope: request.scope },
      kept: this.#record,
      fetch: this.#fetch(),
      show(url) {
        tell(`the server asks for a login: open this address in a browser, within ${withinMs / 1000} s`);
        show(url);
        if (doesOpen) void openPage(url, tell);
      },
    };
  }

  #fetch(): ReturnType<typeof makeCarefulFetch> {
    const { request, signal } = this.#options;
    return makeCarefulFetch({ serverUrl: request.serverUrl, allowHttp: request.allowHttp, signal });
  }
}
