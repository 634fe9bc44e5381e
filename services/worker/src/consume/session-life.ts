/**
 * Sessions of a tenure from their beginning, or from the former owner, to their end. An end fails all that is pending,
 * both ways, and is recorded only after the log has accepted it: a former owner ends nothing. SPEC: WRK-END, WRK-RESTORE.
 */
import { ackWithin, errorText } from '@throughline/log';
import { wireError } from '@throughline/protocol';
import type {
  JsonRpcErrorObject,
  JsonRpcId,
  JsonRpcMessage,
  SessionEndReason,
  SessionRecord,
} from '@throughline/protocol';
import { ownerLostError, sessionEndedError } from '../settle/call-errors.ts';
import { HostedSession } from './hosted-session.ts';
import type { OutgoingRequest } from './hosted-session.ts';
import type { OpenCall } from './open-call.ts';
import { isAccepted } from './tenure-parts.ts';
import type { TenureParts } from './tenure-parts.ts';
import { withdraw } from './withdraw.ts';

export interface SessionHooks {
  onMessage(session: HostedSession, message: JsonRpcMessage, related: JsonRpcId | undefined): Promise<void>;
  onCloseStream(session: HostedSession, related: JsonRpcId): void;
  onReady(session: HostedSession): void;
  /** Writes a message where the client hears it: on the stream of the call while it lasts, else on the standalone one. */
  say(session: HostedSession, call: OpenCall | null, json: string): void;
  /** Settles open calls of the session with an error: all of them, or those that the server was given. */
  failCalls(session: HostedSession, error: JsonRpcErrorObject, which: 'all' | 'running'): void;
}

export class SessionLife {
  readonly #parts: TenureParts;
  readonly #hooks: SessionHooks;
  /** Living sessions that this owner may not rebuild. */
  readonly #terminating = new Set<string>();
  /** Ends that `sessions` does not hold yet, with their reasons. */
  readonly #ending = new Map<string, SessionEndReason>();
  readonly #recording = new Set<string>();
  /** Of them those that were tried in vain. */
  readonly #unrecorded = new Set<string>();

  constructor(parts: TenureParts, hooks: SessionHooks) {
    this.#parts = parts;
    this.#hooks = hooks;
  }

  /**
   * Meets the sessions that a former owner left: those that may not be rebuilt will end, once their calls were failed;
   * those that ended in the log do not come back.
   */
  meet(living: readonly (readonly [string, SessionRecord])[], ended: ReadonlyMap<string, SessionEndReason>): void {
    for (const [key, record] of living) {
      const reason = ended.get(key);
      if (reason !== undefined) {
        this.#ending.set(key, reason);
        void this.#record(key);
        continue;
      }
      if (!this.canRestore(record.server)) this.#terminating.add(key);
      const session = this.make(key, record.server, record.principal, record);
      if (session !== null) session.mayHaveMissed = true;
    }
  }

  /** The session ends as soon as its calls have been failed, or has ended: nothing is run for it any more. */
  isTerminating(key: string): boolean {
    return this.#terminating.has(key);
  }

  /**
   * Ends the sessions that may not be rebuilt and whose open calls have been failed. One that has still to withdraw what
   * a call had asked ends with the last of them.
   */
  async endTerminating(): Promise<void> {
    const { sessions } = this.#parts;
    const keys = [...this.#terminating].filter((key) => (sessions.get(key)?.calls.size ?? 0) === 0);
    await Promise.all(keys.map((key) => this.end(key, 'owner-lost')));
  }

  /** A new session, or one that its record describes; `null` if its server is not hosted here. */
  make(key: string, server: string, principal: string, record: SessionRecord | null): HostedSession | null {
    const { context, sessions } = this.#parts;
    const { hosts, clock, seats, metrics } = context;
    const host = hosts.get(server);
    if (host === undefined) return null;
    const count = (): void => {
      metrics.set('throughline_worker_sessions', seats.count());
    };
    const session = new HostedSession(
      {
        key,
        server,
        principal,
        host,
        clock,
        onMessage: this.#hooks.onMessage,
        onCloseStream: this.#hooks.onCloseStream,
        onReady: this.#hooks.onReady,
        onGone: (...gone) => {
          this.#gone(...gone);
        },
        takeSeat: () => {
          const isTaken = seats.take(server, principal);
          count();
          return isTaken;
        },
        freeSeat: () => {
          seats.free(server, principal);
          count();
        },
      },
      record,
      record?.createdMs ?? clock.wallMs(),
    );
    sessions.add(session);
    return session;
  }

  canRestore(server: string): boolean {
    return this.#parts.context.config.servers[server]?.onOwnerLoss === 'restore';
  }

  hasEnded(key: string): boolean {
    const { directory, partition } = this.#parts;
    return this.#ending.has(key) || directory.hasEnded(partition, key);
  }

  /** Sessions whose end is not recorded yet. */
  ending(): readonly string[] {
    return [...this.#ending.keys()];
  }

  /** Fails all that is pending in the session, both ways, then ends it. Resolves when that is recorded, or has to be tried again. Never rejects. */
  async end(key: string, reason: SessionEndReason): Promise<void> {
    const { sessions, settler, context } = this.#parts;
    if (this.#ending.has(key)) return;
    const session = sessions.get(key);
    this.#ending.set(key, reason);
    this.#terminating.delete(key);
    if (session !== undefined) {
      session.ended = true;
      sessions.delete(key);
      context.places.leave(session);
      const all = (): boolean => true;
      withdraw(session, `session ended: ${reason}`, all, ({ call }, json) => {
        this.#hooks.say(session, call, json);
      });
      this.#hooks.failCalls(session, reason === 'owner-lost' ? ownerLostError(true) : sessionEndedError(reason), 'all');
      this.unload(session);
    }
    this.#parts.touch();
    try {
      if (!(await isAccepted(this.#parts, await settler.sessionEnded(key, reason)))) return;
    } catch {
      // The writer has stopped: the tenure is over, and its successor learns from the log what happened.
      return;
    }
    await this.#record(key);
  }

  /** Tries again to record ends that could not be recorded. */
  recordEnds(): void {
    for (const key of this.#unrecorded) void this.#record(key);
  }

  /** Ends the instance of a session; it may be rebuilt. Failures are logged. */
  unload(session: HostedSession): void {
    session.unload().catch((error: unknown) => {
      this.#parts.context.logger.warn('server instance could not be closed', {
        session: session.key,
        error: errorText(error),
      });
    });
  }

  /** Never rejects. */
  async #record(key: string): Promise<void> {
    const { context, directory, partition, over } = this.#parts;
    const reason = this.#ending.get(key);
    if (reason === undefined || this.#recording.has(key)) return;
    this.#recording.add(key);
    try {
      await ackWithin(context.clock, context.config.appendTimeoutMs, directory.end(partition, key, reason));
      this.#ending.delete(key);
      this.#unrecorded.delete(key);
      this.#parts.touch();
    } catch (error) {
      this.#unrecorded.add(key);
      if (!over.aborted)
        context.logger.warn('session end failed; trying again', { session: key, error: errorText(error) });
    } finally {
      this.#recording.delete(key);
    }
  }

  #gone(session: HostedSession, reason: string, details = ''): void {
    const { context, partition } = this.#parts;
    context.logger.warn('server instance is gone', {
      partition,
      session: session.key,
      server: session.server,
      reason,
      ...(details === '' ? {} : { details }),
    });
    if (session.ended) return;
    // What waits to be run again keeps its questions.
    const isOver = ({ call, id }: OutgoingRequest): boolean => id !== null || call?.state === 'running';
    withdraw(session, 'the server is gone', isOver, (request, json) => {
      this.#hooks.say(session, request.call, json);
    });
    const error = wireError('SERVER_FAILED', `The server is gone: ${reason}`, { mayHaveRun: true });
    this.#hooks.failCalls(session, error, 'running');
    if (!this.canRestore(session.server) || session.record === null) void this.end(session.key, 'server-gone');
  }
}
