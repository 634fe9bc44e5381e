import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { cutAt, fuzz, FUZZ_DEADLINE_MS, mutations, textMutations } from '@throughline/testkit/fuzz';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatEventId, parseEventId } from './event-id.ts';
import { readEventRecord, readInboundRecord } from './event-record.ts';
import { classifyText, findClientFault } from './json-rpc.ts';
import { anchorChecksum } from './record.ts';
import type { LogRecord, RecordHeader } from './record.ts';
import { parseSessionId, verifySessionId } from './session-id.ts';
import {
  readCheckpoint,
  readCheckpointHint,
  readEpochRecord,
  readHistoryMark,
  readSessionEnd,
  readSessionRecord,
  readWorkerRecord,
} from './session-record.ts';
import { formatJsonRpcId, formatStreamLabel, parseJsonRpcId, parseStreamLabel } from './stream-label.ts';

const fixture = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../../fixtures/v1/${name}.json`, import.meta.url), 'utf8'));
interface Texts {
  readonly accepted: readonly { readonly text: string }[];
}
const texts = (name: string): string[] => (fixture(name) as Texts).accepted.map(({ text }) => text);

const { accepted: sessions } = fixture('session-ids') as {
  readonly accepted: readonly {
    readonly text: string;
    readonly secret: string;
    readonly binding: { readonly principal: string; readonly server: string };
  }[];
};
const { records } = fixture('records') as {
  readonly records: readonly {
    readonly key: string | null;
    readonly value: string | null;
    readonly headers: readonly (readonly [string, string | { readonly base64: string }])[];
  }[];
};

describe('codecs', () => {
  it(
    '[ID-TOTAL] any text is an event id or none, and exactly the texts that are written are read',
    async () => {
      const check = (text: string): void => {
        const id = parseEventId(text);
        if (id !== null) expect(formatEventId(id)).toBe(text);
        const label = parseStreamLabel(text);
        if (label !== null) expect(formatStreamLabel(label)).toBe(text);
        const requestId = parseJsonRpcId(text);
        if (requestId !== null) expect(formatJsonRpcId(requestId)).toBe(text);
      };
      const parts = texts('event-ids').flatMap((text) => [text, ...text.split('.')]);
      expect(fuzz('event ids', textMutations(parts), check)).toBeGreaterThan(0);
    },
    FUZZ_DEADLINE_MS,
  );

  it(
    '[SID-TOTAL] [SID-MAC] of all texts near a session id only itself is verified',
    async () => {
      const check = (text: string): void => {
        parseSessionId(text);
        for (const { secret, binding } of sessions) {
          const id = verifySessionId(text, binding, [Uint8Array.from(Buffer.from(secret, 'hex'))]);
          const isOwn = sessions.some(
            (of) => of.text === text && of.secret === secret && isDeepStrictEqual(of.binding, binding),
          );
          expect(id !== null).toBe(isOwn);
        }
      };
      expect(fuzz('session ids', textMutations(texts('session-ids')), check)).toBeGreaterThan(0);
    },
    FUZZ_DEADLINE_MS,
  );

  it(
    '[REC-MESSAGE] any text is a message of one kind or a fault',
    async () => {
      const valid = [
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{},"_meta":{"progressToken":1}}}',
        '{"jsonrpc":"2.0","id":"a","result":{"content":[]}}',
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m","data":{}}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
      ];
      const check = (text: string): void => {
        const classified = classifyText(text);
        if ('fault' in classified) expect(classified.fault).not.toBe('');
        else findClientFault(classified);
      };
      expect(fuzz('JSON-RPC', textMutations(valid), check)).toBeGreaterThan(0);
    },
    FUZZ_DEADLINE_MS,
  );
});

describe('records', () => {
  const NAMES = [...new Set(records.flatMap(({ headers }) => headers.map(([name]) => name)))];
  const bytesOf = (value: string | { readonly base64: string }): Buffer =>
    typeof value === 'string' ? Buffer.from(value) : Buffer.from(value.base64, 'base64');
  const values = records.flatMap(({ headers }) => headers.map(([, value]) => bytesOf(value)));
  const maybe = (valid: readonly (string | null)[]): fc.Arbitrary<Uint8Array | null> =>
    fc.option(mutations(valid.filter((text) => text !== null)), { freq: 10 });

  /** Headers of a record of the fixtures, some of them changed, left out, repeated or added. */
  const headers: fc.Arbitrary<RecordHeader[]> = fc
    .tuple(
      fc.constantFrom(...records),
      fc.array(fc.tuple(fc.constantFrom(...NAMES, '__proto__', ''), mutations(values)), { maxLength: 4 }),
      fc.array(fc.nat(12), { maxLength: 3 }),
    )
    .map(([record, added, left]) => {
      const own = record.headers.map(([name, value]): RecordHeader => [name, bytesOf(value)]);
      const kept = own.filter((_, index) => !left.includes(index));
      return added.length % 2 === 0 ? [...kept, ...added] : [...added, ...kept];
    });
  const place = fc.record({ offset: fc.oneof(fc.nat(100), fc.maxSafeNat()), timestampMs: fc.maxSafeNat() });
  const recordOf = (value: readonly (string | null)[]): fc.Arbitrary<LogRecord> =>
    fc
      .tuple(maybe(records.map(({ key }) => key)), maybe(value), headers, place)
      .map(([key, held, own, at]) => ({ key, value: held, headers: own, ...at }));

  it(
    '[REC-UNREADABLE] any record of events and inbound is read or has a short reason, and has a checksum',
    async () => {
      const check = (record: LogRecord): void => {
        for (const read of [readEventRecord(record), readInboundRecord(record)]) {
          if (!('unreadable' in read)) {
            expect(read.offset).toBe(record.offset);
            continue;
          }
          expect(read.unreadable).not.toBe('');
          expect(read.unreadable.length).toBeLessThan(300);
        }
        expect(anchorChecksum(record)).toBeGreaterThanOrEqual(0);
      };
      expect(fuzz('records', recordOf(records.map(({ value }) => value)), check)).toBeGreaterThan(0);
    },
    FUZZ_DEADLINE_MS,
  );

  it(
    '[REC-VALUES] any value of sessions, meta and checkpoints is such a value or none',
    async () => {
      const valid = [
        '{"server":"demo","principal":"p","version":"2025-11-25","createdMs":1,"initialize":{"jsonrpc":"2.0","id":0,"method":"initialize"},"initialized":true,"logLevel":null,"subscriptions":["a"]}',
        '{"reason":"idle","atMs":1}',
        '{"token":"aaaaaaaaaa","previous":null,"clusterId":"c","reason":"r","atMs":1}',
        '{"end":10,"anchor":{"offset":9,"check":7}}',
        '{"worker":"w","epoch":"aaaaaaaaaa","partitions":[0,1],"leaving":false,"beat":1}',
        '{"offset":9,"claims":[1,5],"worker":"w"}',
        '{"claims":[1,5],"position":10,"open":[],"lost":[]}',
        ...records.flatMap(({ value }) => value ?? []),
      ];
      const isOffset = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;
      const check = (record: LogRecord): void => {
        readSessionRecord(record);
        readSessionEnd(record);
        readEpochRecord(record);
        readWorkerRecord(record);
        const mark = readHistoryMark(record);
        if (mark !== null) expect(isOffset(mark.end)).toBe(true);
        for (const read of [readCheckpointHint(record), readCheckpoint(record)])
          if (read !== null) expect(read.claims.every(isOffset)).toBe(true);
      };
      expect(fuzz('values', recordOf(valid), check)).toBeGreaterThan(0);
    },
    FUZZ_DEADLINE_MS,
  );
});

describe('cutting', () => {
  it('[REC-TEXT] pieces of bytes are those bytes again', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.array(fc.nat()), (bytes, cuts) => {
        expect(Buffer.concat(cutAt(Buffer.from(bytes), cuts))).toEqual(Buffer.from(bytes));
      }),
    );
  });
});
