import { decodeText, encodeText, formatStreamLabel } from '@throughline/protocol';
import type { LogRecord } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { labelOf, makeStored, readStored, startOf } from './stored-event.ts';

const PLACE = { sessionId: 'aaaaaaaaaa.0.0.0.key.mac', epoch: 'aaaaaaaaaa', partition: 0, key: 'key' };
const STREAM = '6c84fb90-12c4-11e1-840d-7b25c5ee775a';

const at = (key: string | null, headers: readonly (readonly [string, string])[]): LogRecord => ({
  key: key === null ? null : encodeText(key),
  value: encodeText('{}'),
  headers: headers.map(([name, value]) => [name, encodeText(value)] as const),
  offset: 5,
  timestampMs: 1,
});

const GOOD = [
  ['v', '1'],
  ['type', 'sdk.event'],
  ['stream', 's0'],
  ['sdk-stream', '_GET_stream'],
  ['follows', '3.AAAAAAAAAAA'],
] as const;

describe('records of the event store', () => {
  it('[EVS-RECORD] are written with these names', () => {
    const event = { sdkStream: STREAM, json: '{"a":1}', isPrimer: false };
    const record = makeStored(PLACE, event, { seq: 2, chain: new Uint8Array(8) });
    expect(decodeText(record.key!)).toBe('key');
    expect(decodeText(record.value!)).toBe('{"a":1}');
    expect(record.headers.map(([name, value]) => [name, decodeText(value)])).toEqual([
      ['v', '1'],
      ['type', 'sdk.event'],
      ['stream', 'r208933653776048'],
      ['sdk-stream', STREAM],
      ['follows', '2.AAAAAAAAAAA'],
    ]);
    const primer = makeStored(PLACE, { ...event, isPrimer: true }, startOf(PLACE, labelOf(STREAM)));
    expect(decodeText(primer.headers[1]![1])).toBe('sdk.primer');
    expect(formatStreamLabel(labelOf('_GET_stream'))).toBe('s0');
  });

  it('[EVS-RECORD] are read, and what is none of the session is passed over', () => {
    expect(readStored(PLACE, at('key', GOOD))).toMatchObject({
      sdkStream: '_GET_stream',
      follows: { seq: 3 },
      isPrimer: false,
    });
    expect(readStored(PLACE, at('other', GOOD))).toBeNull();
    expect(readStored(PLACE, at(null, GOOD))).toBeNull();
    for (const [index, wrong] of [
      ['v', '2'],
      ['type', 'message'],
      ['stream-of', 's0'],
      ['sdk', 'x'],
      ['follows', '3.AAAA'],
    ].entries())
      if (index !== 2) expect(readStored(PLACE, at('key', GOOD.with(index, wrong as never)))).toBeNull();
    for (const follows of ['', '3', '-1.AAAAAAAAAAA', '3.AAAAAAAAAAA.x'])
      expect(readStored(PLACE, at('key', GOOD.with(4, ['follows', follows] as never)))).toBeNull();
  });
});
