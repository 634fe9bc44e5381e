/** The sessions of one partition on this worker. SPEC: WRK-IDLE. */
import type { Clock } from '@throughline/log';
import type { SessionRecord } from '@throughline/protocol';
import type { HostedSession } from './hosted-session.ts';

export class SessionTable {
  readonly #sessions = new Map<string, HostedSession>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(key: string): HostedSession | undefined {
    return this.#sessions.get(key);
  }

  add(session: HostedSession): void {
    this.#sessions.set(session.key, session);
  }

  delete(key: string): void {
    this.#sessions.delete(key);
  }

  all(): readonly HostedSession[] {
    return [...this.#sessions.values()];
  }

  /** Sessions that must end now, with the reason. Pure but for the clock. */
  overdue(
    idleTtlMs: (server: string) => number,
    maxLifeMs: number,
  ): readonly (readonly [HostedSession, 'idle' | 'expired'])[] {
    const overdue: (readonly [HostedSession, 'idle' | 'expired'])[] = [];
    for (const session of this.#sessions.values()) {
      if (this.#clock.wallMs() - session.createdMs > maxLifeMs) overdue.push([session, 'expired']);
      // A server that asks and never hears an answer must not keep its session for ever.
      else if (session.calls.size === 0 && this.#clock.monoMs() - session.lastActivityMs > idleTtlMs(session.server))
        overdue.push([session, 'idle']);
    }
    return overdue;
  }

  /** Loaded sessions that nothing holds and that can be rebuilt later. */
  unloadable(afterMs: number, canRestore: (server: string) => boolean): readonly HostedSession[] {
    return this.all().filter(
      (session) =>
        session.isLoaded &&
        session.calls.size === 0 &&
        session.outgoing.size === 0 &&
        session.record?.initialized === true &&
        canRestore(session.server) &&
        this.#clock.monoMs() - session.lastActivityMs > afterMs,
    );
  }
}

/** The session's record after a request of the client was answered; `null` if nothing of it changed. Pure. */
export function recordAfter(
  record: SessionRecord,
  method: string,
  params: Readonly<Record<string, unknown>> | undefined,
): SessionRecord | null {
  const uri = params?.['uri'];
  const level = params?.['level'];
  if (method === 'logging/setLevel' && typeof level === 'string') return { ...record, logLevel: level };
  if (method === 'resources/subscribe' && typeof uri === 'string' && !record.subscriptions.includes(uri))
    return { ...record, subscriptions: [...record.subscriptions, uri] };
  if (method === 'resources/unsubscribe' && typeof uri === 'string' && record.subscriptions.includes(uri)) {
    return { ...record, subscriptions: record.subscriptions.filter((subscribed) => subscribed !== uri) };
  }
  if (method === 'notifications/initialized' && !record.initialized) return { ...record, initialized: true };
  return null;
}
