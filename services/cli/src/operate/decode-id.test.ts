import { describe, expect, it } from 'vitest';
import { decodeId } from './decode-id.ts';

const EVENT = 'me5e2im44q.2.5.r2~2.1.h2C_ojFTgvsaAm39EM8tVg';
const SESSION = 'me5e2im44q.2.2.1796025357137.NVn7QTAip4umutC6MlpTBA.lR3xwYRij674ZlavBmU_XA';

describe('an id', () => {
  it('[CLI-INSPECT] of either kind is taken apart', () => {
    expect(decodeId(EVENT)).toMatchObject({
      kind: 'event',
      id: { epoch: 'me5e2im44q', partition: 2, offset: 5, stream: { kind: 'request', at: 2 }, requestId: 2, seq: 1 },
    });
    expect(decodeId(SESSION)).toMatchObject({
      kind: 'session',
      id: { partition: 2, from: 2, createdMs: 1796025357137, key: 'NVn7QTAip4umutC6MlpTBA' },
    });
  });

  it('[CLI-INSPECT] that is none says which field is wrong', () => {
    const problem = (text: string): string => {
      const decoded = decodeId(text);
      return decoded.kind === 'malformed' ? decoded.problem : decoded.kind;
    };
    expect(problem('')).toMatch(/^it has 1 fields between dots and not 6/);
    expect(problem(EVENT.replace('me5e2im44q', 'ME5E2IM44Q'))).toMatch(/first field, the epoch/);
    expect(problem(EVENT.replace('.2.5.', '.x.5.'))).toMatch(/second field, the partition/);
    expect(problem(EVENT.replace('.5.', '.05.'))).toMatch(/third field, an offset/);
    expect(problem(EVENT.replace('.r2~2.', '.q2.'))).toMatch(/fourth field is neither a stream/);
    expect(problem(EVENT.slice(0, -1))).toMatch(/check \(22 characters/);
    expect(problem(SESSION.slice(0, -1))).toMatch(/last two fields must be 22 characters/);
    expect(problem(SESSION + 'A'.repeat(100))).toMatch(/longer than 128/);
  });
});
