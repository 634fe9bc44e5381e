import { describe, expect, it } from 'vitest';
import { decideTakeover, MAX_ATTEMPTS } from './takeover.ts';
import type { Effects, TakeoverAction } from './takeover.ts';
import type { RequestState } from './requests.ts';

/** State of a request: how often started, whether something was sent; `null`: nothing speaks of it. */
type Case = readonly [what: string, state: Partial<RequestState> | null, effects: Effects, expected: TakeoverAction];

const run = (attempt: number): TakeoverAction => ({ do: 'dispatch', attempt, withMemory: false });
const recall = (attempt: number): TakeoverAction => ({ do: 'dispatch', attempt, withMemory: true });
const failed = (mayHaveRun: boolean): TakeoverAction => ({ do: 'fail-owner-lost', mayHaveRun });

const LIVING: readonly Case[] = [
  ['unknown effects, no trace: never dispatched', null, 'unknown', run(1)],
  ['idempotent, no trace: never dispatched', null, 'idempotent', run(1)],
  ['no effects, no trace: may have run once unrecorded', null, 'none', run(2)],
  ['unknown effects, not started', {}, 'unknown', run(1)],
  ['unknown effects, started', { attempt: 1 }, 'unknown', failed(true)],
  ['unknown effects, started and sent', { attempt: 1, sent: true }, 'unknown', failed(true)],
  ['unknown effects, sent without a start', { sent: true }, 'unknown', failed(true)],
  ['idempotent, started, nothing sent', { attempt: 1 }, 'idempotent', run(2)],
  ['idempotent, started, something sent', { attempt: 1, sent: true }, 'idempotent', recall(2)],
  ['idempotent, something sent without a start', { sent: true }, 'idempotent', recall(2)],
  ['idempotent, started twice, something sent', { attempt: 2, sent: true }, 'idempotent', failed(true)],
  ['idempotent, started twice', { attempt: 2 }, 'idempotent', failed(true)],
  ['no effects, something sent', { sent: true }, 'none', recall(2)],
  ['no effects, started once, nothing sent', { attempt: 1 }, 'none', run(2)],
  ['no effects, started twice', { attempt: 2 }, 'none', failed(true)],
  ['no effects, started three times', { attempt: 3 }, 'none', failed(true)],
];

const GONE: readonly Case[] = [
  ['no trace, effects unknown', null, 'unknown', failed(false)],
  ['no trace, idempotent', null, 'idempotent', failed(false)],
  ['no trace, no effects: may have run unrecorded', null, 'none', failed(true)],
  ['started', { attempt: 1 }, 'idempotent', failed(true)],
  ['sent', { sent: true }, 'unknown', failed(true)],
];

const full = (state: Partial<RequestState> | null): RequestState | undefined =>
  state === null ? undefined : { attempt: 0, sent: false, ended: false, ...state };
const ALL_EFFECTS: readonly Effects[] = ['unknown', 'idempotent', 'none'];

describe('takeover', () => {
  it.each(LIVING)('[REQ-TAKEOVER] in a session that lives: %s', (_what, state, effects, expected) => {
    expect(
      decideTakeover({ state: full(state), effects, cancelled: false, sessionLives: true, hasOwnStream: true }),
    ).toEqual(expected);
  });

  it.each(GONE)('[REQ-TAKEOVER] in a session that is gone all fails: %s', (_what, state, effects, expected) => {
    expect(
      decideTakeover({ state: full(state), effects, cancelled: false, sessionLives: false, hasOwnStream: true }),
    ).toEqual(expected);
  });

  it('[REQ-TAKEOVER] an answered request is left alone, whatever else is known of it', () => {
    for (const effects of ALL_EFFECTS)
      for (const cancelled of [true, false])
        for (const sessionLives of [true, false])
          for (const attempt of [0, 1, 2]) {
            const state = { attempt, sent: true, ended: true };
            expect(decideTakeover({ state, effects, cancelled, sessionLives, hasOwnStream: true })).toEqual({
              do: 'nothing',
            });
          }
  });

  it('[REQ-TAKEOVER] a cancelled request never runs again: its stream ends', () => {
    for (const effects of ALL_EFFECTS)
      for (const sessionLives of [true, false])
        for (const state of [undefined, full({}), full({ attempt: 1 }), full({ sent: true })]) {
          expect(decideTakeover({ state, effects, cancelled: true, sessionLives, hasOwnStream: true })).toEqual({
            do: 'end-cancelled',
          });
        }
  });

  it('[REQ-TAKEOVER] a member of a batch runs again only if nothing was sent, since nobody can tell whose words they were', () => {
    const facts = { effects: 'idempotent', cancelled: false, sessionLives: true, hasOwnStream: false } as const;
    expect(decideTakeover({ ...facts, state: full({ attempt: 1, sent: true }) })).toEqual(failed(true));
    expect(decideTakeover({ ...facts, state: full({ attempt: 1 }) })).toEqual(run(2));
  });

  it('[REQ-ATTEMPTS] a request is dispatched at most twice by any row of owners that each die at once', () => {
    expect(MAX_ATTEMPTS).toBe(2);
    for (const effects of ALL_EFFECTS) {
      // The first owner may have run a request without effects before it was recorded.
      let runs = effects === 'none' ? 1 : 0;
      let state: RequestState | undefined;
      for (let owner = 0; owner < 10; owner++) {
        const action = decideTakeover({ state, effects, cancelled: false, sessionLives: true, hasOwnStream: true });
        if (action.do !== 'dispatch') break;
        runs++;
        state = { attempt: action.attempt, sent: owner % 2 === 0, ended: false };
      }
      expect(runs, effects).toBe(effects === 'unknown' ? 1 : 2);
    }
  });
});
