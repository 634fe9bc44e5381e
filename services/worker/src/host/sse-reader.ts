/** Reads one SSE body, one event after the other, and keeps the cursor from which the stream can be resumed. */
import { createParser } from 'eventsource-parser';
import { nextChunk } from './next-chunk.ts';
import type { Silence } from './next-chunk.ts';

/** Where a stream is, over all connections that carry it. */
export interface SseCursor {
  /** The last event id seen, for `Last-Event-ID`. */
  lastEventId: string | undefined;
  /** The server's reconnection time in milliseconds. */
  retryMs: number | undefined;
}

export interface SseReadOptions {
  /** Characters of one unfinished event at most. */
  readonly maxChars: number;
  readonly silence: Silence;
  readonly signal: AbortSignal;
  /** Called with the data of each event that has some, in order; reading waits for it. */
  onData(data: string): Promise<void>;
  /** Called for each event with an id; `isNew`: it differs from the last one. */
  onId(isNew: boolean): void;
}

/**
 * - `ended`: the server ended the body properly.
 * - `broken`: the connection broke, or was silent for too long.
 * - `too-long`: an event was longer than the bound.
 * - `aborted`: the signal aborted.
 */
export type SseEnd = 'ended' | 'broken' | 'too-long' | 'aborted';

/** Reads `body` to its end and moves `cursor` along. Never rejects. */
export async function readSse(
  body: ReadableStream<Uint8Array>,
  cursor: SseCursor,
  options: SseReadOptions,
): Promise<SseEnd> {
  let events: { readonly id: string | undefined; readonly data: string }[] = [];
  let isTooLong = false;
  const parser = createParser({
    maxBufferSize: options.maxChars,
    onId(id) {
      events.push({ id, data: '' });
    },
    onEvent(event) {
      events.push({ id: undefined, data: event.data });
    },
    onRetry(ms) {
      cursor.retryMs = ms;
    },
    onError(error) {
      if (error.type === 'max-buffer-size-exceeded') isTooLong = true;
    },
  });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  const onAbort = (): void => {
    // Also ends a read that waits; a fetch aborts by itself, other bodies do not.
    reader.cancel().catch(() => undefined);
  };
  options.signal.addEventListener('abort', onAbort, { once: true });
  const isAborted = (): boolean => options.signal.aborted;
  try {
    for (;;) {
      if (isAborted()) return 'aborted';
      const { done, value } = await nextChunk(reader, options.silence);
      if (done) return isAborted() ? 'aborted' : 'ended';
      try {
        parser.feed(decoder.decode(value, { stream: true }));
      } catch {
        return 'too-long';
      }
      const batch = events;
      events = [];
      for (const { id, data } of batch) {
        if (isAborted()) return 'aborted';
        // An empty id would ask for no resumption at all; what came before it still holds.
        if (id !== undefined && id !== '') {
          const isNew = id !== cursor.lastEventId;
          cursor.lastEventId = id;
          options.onId(isNew);
        }
        if (data !== '') await options.onData(data);
      }
      if (isTooLong) return 'too-long';
    }
  } catch {
    return isAborted() ? 'aborted' : 'broken';
  } finally {
    options.signal.removeEventListener('abort', onAbort);
    reader.cancel().catch(() => undefined);
  }
}
