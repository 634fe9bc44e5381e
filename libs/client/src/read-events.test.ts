import { expect, it } from 'vitest';
import { readEvents } from './read-events.ts';
import type { SseItem } from './read-events.ts';

const encoder = new TextEncoder();

it('[CLIENT-SSE] what came before a byte that is no UTF-8 is handed over, in the same piece as well', async () => {
  const bad = Uint8Array.of(
    ...encoder.encode('id: 1\ndata: one\n\nid: 2\ndata: two\n\nid: 3\ndata: '),
    0xff,
    0x0a,
    0x0a,
  );
  for (const pieces of [[bad], [bad.subarray(0, 10), bad.subarray(10)]]) {
    const items: SseItem[] = [];
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(piece);
      },
    });
    const reading = readEvents(body, (item) => items.push(item) > 0, {
      silenceMs: () => 10_000,
      maxEventChars: 1000,
      signal: new AbortController().signal,
    });
    await expect(reading).rejects.toMatchObject({ code: 'NOT_MCP' });
    expect(items).toEqual([
      { kind: 'event', id: '1', data: 'one' },
      { kind: 'event', id: '2', data: 'two' },
    ]);
  }
});

it('[CLIENT-SSE] an id and its data that come in pieces of any size are one event', async () => {
  const text = encoder.encode('id: a\r\ndata: ä\r\ndata: ö\r\n\r\nid: b\n\n');
  for (let size = 1; size <= text.length; size++) {
    const items: SseItem[] = [];
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < text.length; at += size) controller.enqueue(text.subarray(at, at + size));
        controller.close();
      },
    });
    const ended = await readEvents(body, (item) => items.push(item) > 0, {
      silenceMs: () => 10_000,
      maxEventChars: 1000,
      signal: new AbortController().signal,
    });
    expect([ended, items], `pieces of ${size}`).toEqual([
      'ended',
      [
        { kind: 'event', id: 'a', data: 'ä\nö' },
        { kind: 'event', id: 'b', data: '' },
      ],
    ]);
  }
});
