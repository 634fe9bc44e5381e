import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeText } from './record.ts';
import type { LogRecord } from './record.ts';
import {
  formatCheckpoint,
  readCheckpoint,
  readCheckpointHint,
  readClaims,
  formatHistoryMark,
  readEpochRecord,
  readHistoryMark,
  readSessionEnd,
  readSessionRecord,
  readWorkerRecord,
} from './session-record.ts';

function holding(value: Uint8Array | null): LogRecord {
  return { key: encodeText('k'), value, headers: [], offset: 7, timestampMs: 1767225600000 };
}
const json = (value: unknown): LogRecord => holding(encodeText(JSON.stringify(value)));

const readers = {
  readSessionRecord,
  readSessionEnd,
  readEpochRecord,
  readWorkerRecord,
  readCheckpointHint,
  readCheckpoint,
};
const offset = fc.maxSafeNat();

describe('values in JSON', () => {
  it.each(Object.entries(readers))('[REC-VALUES] %s reads any bytes as a value or as null', (_, read) => {
    const field = fc.constantFrom(
      'claims',
      'inbound',
      'from',
      'open',
      'offset',
      'token',
      'reason',
      'atMs',
      'initialize',
    );
    const nearly = fc.dictionary(field, fc.oneof(fc.jsonValue(), fc.maxSafeInteger(), fc.array(offset)));
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array(),
          fc.json().map(encodeText),
          nearly.map((v) => encodeText(JSON.stringify(v))),
        ),
        (bytes) => {
          const value = read(holding(bytes));
          expect(value === null || typeof value === 'object').toBe(true);
        },
      ),
    );
    for (const text of ['', 'null', '[]', '1', '"x"', '{', '['.repeat(200_000), '\uFEFF{}'])
      expect(read(holding(encodeText(text))), text.slice(0, 10)).toBeNull();
    expect(read(holding(null))).toBeNull();
  });

  it('[REC-VALUES] a session holds what another worker needs to rebuild it', () => {
    const session = {
      server: 'files',
      principal: 'p',
      version: '2025-11-25',
      createdMs: 5,
      initialize: { jsonrpc: '2.0', id: 0, method: 'initialize', params: {} },
      initialized: true,
      logLevel: 'debug',
      subscriptions: ['file:///a'],
    };
    expect(readSessionRecord(json(session))).toEqual(session);
    expect(readSessionRecord(json({ ...session, extra: 1 }))).toEqual(session);
    expect(readSessionRecord(json({ initialize: session.initialize, subscriptions: [1, 'b'], logLevel: 3 }))).toEqual({
      server: '',
      principal: '',
      version: '',
      createdMs: 0,
      initialize: session.initialize,
      initialized: false,
      logLevel: null,
      subscriptions: ['b'],
    });
    expect(readSessionRecord(json({ ...session, initialize: { jsonrpc: '2.0', method: 'initialize' } }))).toBeNull();
  });

  it('[REC-VALUES] an end of session has a known reason, or unknown, and a time, or that of its record', () => {
    const reasons = [
      'deleted',
      'resumption-rejected',
      'owner-lost',
      'idle',
      'expired',
      'server-gone',
      'epoch-ended',
      'unknown',
    ];
    for (const reason of reasons) expect(readSessionEnd(json({ reason, atMs: 5 }))).toEqual({ reason, atMs: 5 });
    expect(readSessionEnd(json({ reason: 'bored' }))).toEqual({ reason: 'unknown', atMs: 1767225600000 });
    expect(readSessionEnd(json({}))).toEqual({ reason: 'unknown', atMs: 1767225600000 });
  });

  it('[REC-VALUES] an epoch names its predecessor, or null', () => {
    const epoch = { token: 'k7q2fabcde', previous: null, clusterId: 'c', reason: 'first' };
    expect(readEpochRecord(json({ ...epoch, atMs: 7 }))).toEqual({ ...epoch, atMs: 7 });
    expect(readEpochRecord(json(epoch))?.atMs).toBe(1767225600000);
    expect(readEpochRecord(json({ ...epoch, previous: 'abcdefghij' }))?.previous).toBe('abcdefghij');
    for (const previous of [undefined, 5, {}]) expect(readEpochRecord(json({ ...epoch, previous }))).toBeNull();
    expect(readEpochRecord(json({ ...epoch, token: 5 }))).toBeNull();
    expect(readEpochRecord(json({ ...epoch, clusterId: undefined }))).toBeNull();
  });

  it('[REC-VALUES] a mark says up to where all was acknowledged, and names a record below that', () => {
    const anchored = { end: 9, anchor: { offset: 8, check: 4_294_967_295 } };
    expect(readHistoryMark(json(anchored))).toEqual(anchored);
    expect(formatHistoryMark(anchored)).toBe('{"end":9,"anchor":{"offset":8,"check":4294967295}}');
    expect(readHistoryMark(json({ end: 0 }))).toEqual({ end: 0, anchor: null });
    expect(formatHistoryMark({ end: 0, anchor: null })).toBe('{"end":0}');
    for (const odd of [
      {},
      { end: -1 },
      { end: 9, anchor: 5 },
      { end: 9, anchor: { offset: 9, check: 1 } },
      { end: 9, anchor: { offset: 8 } },
    ])
      expect(readHistoryMark(json(odd))).toBeNull();
  });

  it('[REC-VALUES] a heartbeat names its worker and the partitions it serves', () => {
    const worker = { worker: 'w', epoch: 'e', partitions: [0, 3], leaving: true, beat: 9 };
    expect(readWorkerRecord(json(worker))).toEqual(worker);
    const odd = { worker: 'w', partitions: [1, -1, 'x'], leaving: 1, beat: -1 };
    expect(readWorkerRecord(json(odd))).toEqual({ worker: 'w', epoch: '', partitions: [1], leaving: false, beat: 0 });
    expect(readWorkerRecord(json({ ...worker, worker: null }))).toBeNull();
  });

  it('[REC-VALUES] claims are rising offsets', () => {
    expect(readClaims([])).toEqual([]);
    expect(readClaims([0, 5, 6])).toEqual([0, 5, 6]);
    for (const odd of [null, 5, {}, [5, 5], [6, 5], [-1], [1.5], ['1'], [null], [2 ** 53]])
      expect(readClaims(odd)).toBeNull();
    expect(readCheckpointHint(json({ offset: 9, claims: [1], worker: 'w' }))).toEqual({
      offset: 9,
      claims: [1],
      worker: 'w',
    });
    expect(readCheckpointHint(json({ offset: 9, claims: [2, 1], worker: 'w' }))).toBeNull();
    expect(readCheckpointHint(json({ claims: [1], worker: 'w' }))).toBeNull();
  });

  it('[REC-VALUES] a checkpoint is read back as it was written', () => {
    const checkpoint = fc.record({
      claims: fc.uniqueArray(offset).map((claims) => claims.sort((one, other) => one - other)),
      inbound: offset,
      from: offset,
      open: fc.array(fc.record({ at: offset, attempt: fc.nat(5), sent: fc.boolean() })),
    });
    fc.assert(
      fc.property(checkpoint, (value) => {
        expect(readCheckpoint(holding(encodeText(formatCheckpoint(value))))).toEqual(value);
      }),
    );
    expect(formatCheckpoint({ claims: [1, 9], inbound: 5, from: 2, open: [{ at: 3, attempt: 1, sent: true }] })).toBe(
      '{"claims":[1,9],"inbound":5,"from":2,"open":[[3,1,1]]}',
    );
  });

  it('[REC-VALUES] a checkpoint says which requests are lost, by ranges of inbound and since when', () => {
    const whole = { claims: [1], inbound: 30, from: 30, open: [], lost: [{ from: 10, to: 20, since: 7 }] };
    const text = '{"claims":[1],"inbound":30,"from":30,"open":[],"lost":[[10,20,7]]}';
    expect(formatCheckpoint(whole)).toBe(text);
    expect(readCheckpoint(holding(encodeText(text)))).toEqual(whole);
    for (const lost of [5, [5], [[10, 20]], [['10', 20, 7]], [[10, 20, -1]]])
      expect(readCheckpoint(json({ claims: [1], inbound: 30, from: 30, open: [], lost }))).toBeNull();
  });

  it.each([[[5]], [[5, 0]], [[5, 0, true]], [[5, 0, 2]], [['5', 0, 0]], [[5, -1, 0]], [5], [{ at: 5 }]])(
    '[REC-VALUES] a checkpoint with %j among the open requests is unreadable as a whole',
    (entry) => {
      const whole = { claims: [1], inbound: 9, from: 2 };
      expect(readCheckpoint(json({ ...whole, open: [[3, 0, 0]] }))).not.toBeNull();
      expect(readCheckpoint(json({ ...whole, open: [[3, 0, 0], entry] }))).toBeNull();
    },
  );
});
