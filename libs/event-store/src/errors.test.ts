import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { EventStoreError, hasEventStoreCode, ResumeRefused } from './errors.ts';
import type { EventStoreErrorCode } from './errors.ts';

const CODES = {
  SHARED_LOG: true,
  SESSION_ENDED: true,
  TOO_MANY_SESSIONS: true,
  TOO_MUCH_WAITING: true,
  TOO_LARGE: true,
  REPLAY_TOO_LARGE: true,
  CONTENDED: true,
  RESTORE_REFUSED: true,
} as const satisfies Record<EventStoreErrorCode, true>;

describe('the codes of the event store', () => {
  it('[EVS-CODES] are these, and the guide names each', () => {
    const guide = readFileSync(new URL('../../../docs/guides/event-store.md', import.meta.url), 'utf8');
    const named = [...guide.matchAll(/^\| `([A-Z_]+)` /gmu)].map(([, code]) => code);
    expect(named).toEqual(Object.keys(CODES));
    const error = new EventStoreError('CONTENDED', 'why', new Error('cause'));
    expect(hasEventStoreCode(error, 'CONTENDED')).toBe(true);
    expect(hasEventStoreCode(error, 'TOO_LARGE')).toBe(false);
    expect(error.cause).toBeInstanceOf(Error);
  });

  it('[EVS-CODES] a refusal has the code of its reason, apart from these', () => {
    const refused = new ResumeRefused({ reason: 'gap', requested: 'x' });
    expect(refused).toMatchObject({ name: 'ResumeRefused', code: 'GAP', reason: 'gap', httpStatus: 404 });
  });
});
