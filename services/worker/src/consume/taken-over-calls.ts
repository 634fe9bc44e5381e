/** What becomes of each request that a former owner left open. SPEC: WRK-TAKEOVER, WRK-MEMORY, WRK-WITHDRAW. */
import { decideTakeover } from '@throughline/history';
import type { JsonRpcErrorObject } from '@throughline/protocol';
import { outcomeLostError, ownerLostError } from '../settle/call-errors.ts';
import type { HostedSession } from './hosted-session.ts';
import type { OpenCall } from './open-call.ts';
import { RecalledCalls } from './recalled-calls.ts';
import type { RecallHooks } from './recalled-calls.ts';
import type { SessionLife } from './session-life.ts';
import { cancelKey } from './tenure-parts.ts';
import type { TakeoverPhase, TenureParts } from './tenure-parts.ts';
import { leavesStart } from './tool-catalog.ts';

export interface TakenOverEnds extends RecallHooks {
  settle(session: HostedSession, call: OpenCall, error: JsonRpcErrorObject): void;
  close(session: HostedSession, call: OpenCall): void;
  count(outcome: 'owner-lost' | 'rerun'): void;
}

export class TakenOverCalls {
  readonly #parts: TenureParts;
  readonly #life: SessionLife;
  readonly #ends: TakenOverEnds;
  readonly #recalled: RecalledCalls;

  constructor(parts: TenureParts, life: SessionLife, ends: TakenOverEnds) {
    this.#parts = parts;
    this.#life = life;
    this.#ends = ends;
    this.#recalled = new RecalledCalls(parts, {
      run: (session, call, attempt) => {
        ends.run(session, call, attempt);
      },
      lose: (session, call) => {
        ends.lose(session, call);
        if (life.isTerminating(session.key) && session.calls.size === 0) void life.end(session.key, 'owner-lost');
      },
    });
  }

  /** All that lay in `inbound` was taken in: calls that had spoken go on. */
  recall(): void {
    this.#recalled.begin();
  }

  take(session: HostedSession, call: OpenCall, id: string, phase: TakeoverPhase): void {
    const { cancels, answers, knownFrom, mayRepeat } = phase;
    const since = this.#parts.watch.since();
    const state = since.ledger().get(call.at, call.stream.at);
    call.sent = state?.sent ?? false;
    call.attempt = state?.attempt ?? 0;
    if (since.isAlias(call.stream.at)) {
      // It repeats a request that is too old to be known here: to run it would be to run that one again.
      this.#ends.settle(session, call, outcomeLostError());
      return;
    }
    const isKnown = knownFrom === null || (call.after !== null && call.after >= knownFrom);
    const action = isKnown
      ? decideTakeover({
          state,
          effects: call.effects,
          cancelled: call.message.method !== 'initialize' && (cancels.get(cancelKey(call.key, id)) ?? -1) > call.at,
          sessionLives: !this.#life.isTerminating(call.key),
          hasOwnStream: call.batch === null,
        })
      : ({ do: 'fail-owner-lost', mayHaveRun: true } as const);
    switch (action.do) {
      case 'nothing':
        call.state = 'done';
        this.#ends.close(session, call);
        return;
      case 'end-cancelled':
        this.#parts.settler.endCancelled(call);
        this.#ends.close(session, call);
        return;
      case 'fail-owner-lost':
        if (this.#mayHaveAsked(call)) {
          this.#recalled.add(session, call, null, answers);
          return;
        }
        this.#ends.count('owner-lost');
        this.#ends.settle(
          session,
          call,
          ownerLostError(action.mayHaveRun || mayRepeat || !this.#leavesStart(session, call)),
        );
        // A session that did not begin cannot go on; one that is recorded began, if nothing says that it did not.
        if (call.message.method === 'initialize' && (isKnown || session.record === null))
          void this.#life.end(session.key, 'owner-lost');
        return;
      case 'dispatch':
        // The session begins with this very request.
        if (call.message.method === 'initialize') session.record = null;
        if (action.attempt > 1) this.#ends.count('rerun');
        if (action.withMemory) this.#recalled.add(session, call, action.attempt, answers);
        else this.#ends.run(session, call, action.attempt);
    }
  }

  /** Whether questions of it may be open that end with it; those of a batch are anybody's. */
  #mayHaveAsked({ sent, batch, message }: OpenCall): boolean {
    return sent && batch === null && message.method !== 'initialize';
  }

  #leavesStart({ server }: HostedSession, { message }: OpenCall): boolean {
    return leavesStart(message, this.#parts.context.catalogs.get(server));
  }
}
