import { encodeText, extendChain, formatEventId, requestStream, startChain, streamTag } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import type { SseItem } from './sse-parser.ts';
import { SseParser } from './sse-parser.ts';
import { checkStream } from './stream-check.ts';

const SESSION = 'some-session';
const STREAM = requestStream(7);

/** Events as a faithful gateway writes them; `''` only moves the cursor. */
function faithful(...data: readonly string[]): SseItem[] {
  let seq = 0;
  let chain = startChain(SESSION, STREAM);
  return data.map((text, index) => {
    if (text !== '') {
      seq++;
      chain = extendChain(chain, encodeText(text));
    }
    const tag = streamTag(SESSION, STREAM);
    const id = formatEventId({
      epoch: 'aaaaaaaaaa',
      partition: 0,
      offset: index,
      stream: STREAM,
      seq,
      tag,
      crc: 0,
      chain,
    });
    return { kind: 'event', id, data: text };
  });
}

describe('checkStream', () => {
  it('[E2E-GATEWAY-KILL] takes a whole stream with cursors and comments in between', () => {
    const items: SseItem[] = [...faithful('', 'a', '', 'b', 'c'), { kind: 'comment', data: 'keepalive' }];
    expect(checkStream(SESSION, items).map(({ data }) => data)).toEqual(['a', 'b', 'c']);
  });

  it('[E2E-GATEWAY-KILL] finds a gap, a repeat, an exchange, another content and another stream', () => {
    const [a, b, c] = faithful('a', 'b', 'c') as [SseItem, SseItem, SseItem];
    const wrong: readonly (readonly SseItem[])[] = [
      [a, c],
      [b, c],
      [a, a, b],
      [a, b, b],
      [b, a],
      [a, { ...b, data: 'x' }],
      [a, { kind: 'event', data: 'without an id' }],
      [a, { ...b, id: 'nonsense' }],
    ];
    for (const items of wrong) expect(() => checkStream(SESSION, items), JSON.stringify(items)).toThrow();
    expect(() => checkStream('another-session', [a, b, c])).toThrow();
  });
});

describe('SseParser', () => {
  it('[E2E-REFUSED-WIRE] reads events, comments, ids without data and retry, however the bytes are cut', () => {
    const text =
      ': hello\n\nid: 1\nretry: 50\ndata: \n\nid: 2\r\ndata: {"a":\r\ndata: "é"}\r\n\r\nretry: 9\n\ndata:x\n\n';
    const expected: readonly SseItem[] = [
      { kind: 'comment', data: 'hello' },
      { kind: 'event', id: '1', data: '', retryMs: 50 },
      { kind: 'event', id: '2', data: '{"a":\n"é"}' },
      { kind: 'event', data: '', retryMs: 9 },
      { kind: 'event', data: 'x' },
    ];
    const bytes = encodeText(text);
    for (const size of [1, 2, 3, 7, bytes.length]) {
      const items: SseItem[] = [];
      const parser = new SseParser((item) => items.push(item));
      for (let at = 0; at < bytes.length; at += size) parser.push(bytes.subarray(at, at + size));
      expect(items).toEqual(expected);
    }
  });
});
