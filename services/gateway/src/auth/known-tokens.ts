/** The tokens of a list, which may change while the gateway runs. SPEC: AUTH-REVOKED. */
import { setMaxListeners } from 'node:events';
import type { GatewayConfig } from '../config.ts';
import type { Caller } from './judge-token.ts';

interface Listed {
  readonly caller: Caller;
  readonly revoke: AbortController;
}

/** Without a reason each abort makes an error with a stack, though nobody asks for it. */
const REVOKED = 'the token is not listed any more';

export class KnownTokens {
  #listed = new Map<string, Listed>();

  constructor(tokens: NonNullable<GatewayConfig['tokens']>) {
    this.replace(tokens);
  }

  /** By the digest: time tells nothing of a token. */
  callerOf(digest: string): Caller | null {
    return this.#listed.get(digest)?.caller ?? null;
  }

  /** Those that stay for the same principal are the same callers; to all others their streams are told. */
  replace(tokens: NonNullable<GatewayConfig['tokens']>): void {
    const before = this.#listed;
    this.#listed = new Map(
      tokens.map(({ principal, sha256 }) => {
        const listed = before.get(sha256);
        return [sha256, listed?.caller.principal === principal ? listed : makeListed(principal)];
      }),
    );
    for (const [digest, listed] of before) if (this.#listed.get(digest) !== listed) listed.revoke.abort(REVOKED);
  }
}

function makeListed(principal: string): Listed {
  const revoke = new AbortController();
  // As many streams as the token has open.
  setMaxListeners(0, revoke.signal);
  return { caller: { principal, untilMs: null, revoked: revoke.signal }, revoke };
}
