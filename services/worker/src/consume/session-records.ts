/** Keeps the records of sessions in the compacted topic: what another worker needs to go on. SPEC: WRK-RESTORE. */
import { ackWithin, errorText } from '@throughline/log';
import type { JsonRpcRequest, SessionRecord } from '@throughline/protocol';
import type { HostedSession } from './hosted-session.ts';
import { recordAfter } from './session-table.ts';
import type { TenureParts } from './tenure-parts.ts';

type Params = Readonly<Record<string, unknown>> | undefined;

export class SessionRecords {
  readonly #parts: TenureParts;

  constructor(parts: TenureParts) {
    this.#parts = parts;
  }

  /** After the server has accepted `initialize`. Errors: those of `Log.append`. */
  async begin(session: HostedSession, initialize: JsonRpcRequest, result: unknown): Promise<void> {
    const fields = asObject(result);
    const version = fields['protocolVersion'];
    session.capabilities = asObject(fields['capabilities']);
    session.record = {
      server: session.server,
      principal: session.principal,
      version: typeof version === 'string' ? version : '',
      createdMs: session.createdMs,
      initialize,
      initialized: false,
      logLevel: null,
      subscriptions: [],
    };
    await this.#put(session, session.record);
  }

  /** After a message of the client took effect. Errors: those of `Log.append`. */
  async update(session: HostedSession, method: string, params: Params): Promise<void> {
    const record = session.record === null ? null : recordAfter(session.record, method, params);
    if (record === null) return;
    session.record = record;
    await this.#put(session, record);
  }

  /** As {@link update}, for what needs no answer: a failure is logged, and mended by {@link repair}. */
  note(session: HostedSession, method: string, params: Params): void {
    this.update(session, method, params).catch((error: unknown) => {
      this.#log(session, error);
    });
  }

  /**
   * Appends the record again if the topic holds another: an append failed, a former owner that woke up late wrote over
   * it, which no claim can fence in a compacted topic, or somebody wrote what cannot be read.
   */
  repair(session: HostedSession): void {
    const { directory, partition } = this.#parts;
    const held = directory.get(partition, session.key);
    if (session.ended || session.record === null || held === undefined || held.end !== null) return;
    if (held.record !== null && isSame(held.record, session.record)) return;
    if (held.record === null) this.#noteUnreadable(session);
    this.#put(session, session.record).catch((error: unknown) => {
      this.#log(session, error);
    });
  }

  #noteUnreadable(session: HostedSession): void {
    const { context, partition } = this.#parts;
    context.metrics.add('throughline_worker_unreadable_total', 1, { topic: 'sessions' });
    context.logger.warn('session record is unreadable; written anew', { partition, session: session.key });
  }

  #put(session: HostedSession, record: SessionRecord): Promise<void> {
    const { context, directory, partition } = this.#parts;
    return ackWithin(context.clock, context.config.appendTimeoutMs, directory.put(partition, session.key, record));
  }

  #log(session: HostedSession, error: unknown): void {
    this.#parts.context.logger.warn('session record failed', { session: session.key, error: errorText(error) });
  }
}

function isSame(a: SessionRecord, b: SessionRecord): boolean {
  return (
    a.initialized === b.initialized &&
    a.logLevel === b.logLevel &&
    a.version === b.version &&
    a.subscriptions.length === b.subscriptions.length &&
    a.subscriptions.every((uri, index) => uri === b.subscriptions[index])
  );
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
