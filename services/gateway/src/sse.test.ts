import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatComment, formatEvent, formatPrimer, formatRetry, normalizeData } from './sse.ts';
import { readSse } from './testing/sse-reading.ts';

describe('Server-Sent Events', () => {
  it('[GW-SSE] the text is what the standard says', () => {
    expect(formatEvent('id-1', '{"a":1}')).toBe('id: id-1\ndata: {"a":1}\n\n');
    expect(formatEvent('id-1', '{\n"a":1\n}')).toBe('id: id-1\ndata: {\ndata: "a":1\ndata: }\n\n');
    expect(formatPrimer('id-1', 499.6)).toBe('id: id-1\nretry: 500\ndata: \n\n');
    expect(formatRetry(500.4)).toBe('retry: 500\n\n');
    expect(formatComment('keepalive')).toBe(': keepalive\n\n');
  });

  it('[GW-SSE] whatever the data, a client reads one event with that data, line ends as LF', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '\n', '\r', '\r\n', ':', ' ', 'id: x', 'ü', '\u2028', '') }),
        (text) => {
          const data = normalizeData(text);
          expect(data).toBe(text.replaceAll('\r\n', '\n').replaceAll('\r', '\n'));
          expect(readSse(formatEvent('i', data))).toEqual([{ id: 'i', data }]);
        },
      ),
    );
  });
});
