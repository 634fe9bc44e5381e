/**
 * What servers have said and the log does not have yet, over all partitions of a worker: each principal has a share of
 * it, and its sessions have shares of that. Whoever is beyond both is held up, nobody else. SPEC: WRK-FAIR.
 */

/** Bytes of one principal that wait, before its servers are held up. */
export const PRINCIPAL_BYTES = 128 * 1024;
/** Bytes of one session that wait, however many of its principal do: with less, each small message would be an append. */
const SESSION_BYTES = 4 * 1024;
/** Bytes of all principals together, before the share of each is less. */
const TOTAL_BYTES = 4 * 1024 * 1024;

/** What waits: of one session, of all sessions of its principal that wait, of all principals that wait. */
export interface Waiting {
  readonly session: number;
  readonly principal: { readonly bytes: number; readonly sessions: number };
  readonly total: { readonly bytes: number; readonly principals: number };
}

/**
 * Whether a session is to be held up: its principal has more than its share waiting, and the session more than an equal
 * part of that. One that has little waiting never is. What waits of one principal is thus its share at most, or 4 KiB of
 * each of its sessions, and what each of its servers said last. Pure.
 */
export function isHeldUp({ session, principal, total }: Waiting): boolean {
  const share =
    total.bytes <= TOTAL_BYTES ? PRINCIPAL_BYTES : Math.min(PRINCIPAL_BYTES, TOTAL_BYTES / total.principals);
  return principal.bytes > share && session > Math.max(SESSION_BYTES, share / principal.sessions);
}

interface Principal {
  readonly name: string;
  bytes: number;
  sessions: number;
}

interface Session {
  readonly principal: Principal;
  bytes: number;
}

export class WaitingShares {
  /** Those of which something waits. */
  readonly #sessions = new Map<string, Session>();
  readonly #principals = new Map<string, Principal>();
  /** Those that are held up, in the order in which they came. */
  readonly #heldUp = new Set<{ readonly session: string; readonly go: () => void }>();
  #bytes = 0;

  /** Bytes of a session that are not durable yet. */
  of(session: string): number {
    return this.#sessions.get(session)?.bytes ?? 0;
  }

  /** More of a session waits. `principal`: whose it is, the same each time. */
  add(session: string, principal: string, bytes: number): void {
    let known = this.#sessions.get(session);
    if (known === undefined) {
      known = { principal: this.#principalOf(principal), bytes: 0 };
      known.principal.sessions++;
      this.#sessions.set(session, known);
    }
    known.bytes += bytes;
    known.principal.bytes += bytes;
    this.#bytes += bytes;
  }

  /** So much of it is durable, or will never be. {@link wake} is to follow. */
  take(session: string, bytes: number): void {
    const known = this.#sessions.get(session);
    if (known === undefined) return;
    const { principal } = known;
    known.bytes -= bytes;
    principal.bytes -= bytes;
    this.#bytes -= bytes;
    if (known.bytes > 0) return;
    this.#sessions.delete(session);
    if (--principal.sessions === 0) this.#principals.delete(principal.name);
  }

  /** Lets those go on that need not be held up any more. */
  wake(): void {
    for (const each of this.#heldUp) {
      if (this.#isHeldUp(each.session)) continue;
      this.#heldUp.delete(each);
      each.go();
    }
  }

  /** Resolves when the servers of a session may say more. */
  room(session: string): Promise<void> {
    if (!this.#isHeldUp(session)) return Promise.resolve();
    return new Promise((go) => {
      this.#heldUp.add({ session, go });
    });
  }

  #isHeldUp(session: string): boolean {
    const known = this.#sessions.get(session);
    if (known === undefined) return false;
    const { principal, bytes } = known;
    return isHeldUp({ session: bytes, principal, total: { bytes: this.#bytes, principals: this.#principals.size } });
  }

  #principalOf(name: string): Principal {
    let principal = this.#principals.get(name);
    if (principal === undefined) this.#principals.set(name, (principal = { name, bytes: 0, sessions: 0 }));
    return principal;
  }
}
