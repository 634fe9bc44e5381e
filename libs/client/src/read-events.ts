/**
 * Reads an event stream as the HTML standard says: cut UTF-8, CRLF, a byte order mark, and an event without its last
 * line end, which is none. One item is handed over at a time. SPEC: CLIENT-SSE, CLIENT-SILENCE.
 */
import { createParser } from 'eventsource-parser';
import { TransportError } from './client-errors.ts';
import { within } from './wait.ts';

export type SseItem =
  | {
      readonly kind: 'event';
      /** `null`: it has none. */
      readonly id: string | null;
      /** Empty if the event only moves the cursor, or is of another type than `message`. */
      readonly data: string;
    }
  | { readonly kind: 'comment'; readonly text: string }
  | { readonly kind: 'retry'; readonly ms: number };

export interface ReadOptions {
  /** Milliseconds without a byte after which the connection counts as dead. It may change while nothing comes. */
  silenceMs(): number;
  /** Characters of one event at most. */
  readonly maxEventChars: number;
  readonly signal: AbortSignal;
}

/**
 * `onItem` says whether to go on. Resolves with `ended` when the server ended the stream, `stopped` when `onItem` or the
 * signal did. Rejects with `UNREACHABLE` when the connection broke, `SILENT`, or `NOT_MCP` for what is no UTF-8 or too long.
 */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  onItem: (item: SseItem) => Promise<boolean> | boolean,
  { silenceMs, maxEventChars, signal }: ReadOptions,
): Promise<'ended' | 'stopped'> {
  const reader = body.getReader();
  // The parser takes the byte order mark away; a decoder that did so as well would take a second one.
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const { feed, take } = itemQueue(maxEventChars);
  try {
    for (;;) {
      const chunk = await nextChunk(reader, silenceMs, signal);
      if (chunk === null) return 'ended';
      // Line by line: what came before a line that is no UTF-8 is handed over first.
      for (const line of linesOf(chunk)) {
        feed(decode(decoder, line));
        for (const item of take()) {
          if (signal.aborted || !(await onItem(item))) return 'stopped';
        }
      }
    }
  } catch (error) {
    if (signal.aborted) return 'stopped';
    throw error;
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** The whole of a body that is no stream, within the same bounds. */
export async function readText(body: ReadableStream<Uint8Array> | null, options: ReadOptions): Promise<string> {
  if (body === null) return '';
  const reader = body.getReader();
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  try {
    for (;;) {
      const chunk = await nextChunk(reader, options.silenceMs, options.signal);
      if (chunk === null) return text;
      text += decode(decoder, chunk);
      if (text.length > options.maxEventChars) throw tooLong(options.maxEventChars);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

const LINE_FEED = 0x0a;

/** Each with its end, and what is left. */
function* linesOf(chunk: Uint8Array): Generator<Uint8Array> {
  let from = 0;
  for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
    yield chunk.subarray(from, end + 1);
    from = end + 1;
  }
  if (from < chunk.length) yield chunk.subarray(from);
}

/** So often it is asked whether the silence has lasted too long by what is known of the server meanwhile. */
const LOOK_MS = 1000;

/** `null`: the end. */
async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  silenceMs: () => number,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  const read = reader.read().catch((cause: unknown) => {
    throw new TransportError('UNREACHABLE', 'The connection broke', { cause });
  });
  const began = performance.now();
  for (;;) {
    const leftMs = silenceMs() - (performance.now() - began);
    const silent = new TransportError('SILENT', `The server said nothing for ${Math.round(silenceMs())} ms`);
    if (leftMs <= 0) throw silent;
    try {
      const { value } = await within(read, Math.min(leftMs, LOOK_MS), () => silent, signal);
      return value ?? null;
    } catch (error) {
      if (error !== silent) throw error;
    }
  }
}

function decode(decoder: InstanceType<typeof TextDecoder>, chunk: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: true });
  } catch (cause) {
    throw new TransportError('NOT_MCP', 'The answer is no UTF-8', { cause });
  }
}

function tooLong(maxEventChars: number): TransportError {
  return new TransportError('NOT_MCP', `The answer holds more than ${maxEventChars} characters without an end`);
}

/** The parser calls back; what it found is kept until it can be handed over in order. */
function itemQueue(maxEventChars: number): { feed(text: string): void; take(): SseItem[] } {
  let items: SseItem[] = [];
  /** An id whose event has no data so far: then it only moves the cursor. */
  let idAlone: string | null = null;
  const settle = (): void => {
    if (idAlone !== null) items.push({ kind: 'event', id: idAlone, data: '' });
    idAlone = null;
  };
  const parser = createParser({
    maxBufferSize: maxEventChars,
    onId(id) {
      settle();
      if (id !== '') idAlone = id;
    },
    onEvent({ id, event, data }) {
      idAlone = null;
      const isMessage = event === undefined || event === 'message';
      items.push({ kind: 'event', id: id === undefined || id === '' ? null : id, data: isMessage ? data : '' });
    },
    onComment(text) {
      settle();
      items.push({ kind: 'comment', text });
    },
    onRetry(ms) {
      items.push({ kind: 'retry', ms });
    },
    onError({ type }) {
      if (type === 'max-buffer-size-exceeded') throw tooLong(maxEventChars);
    },
  });
  return {
    feed(text) {
      parser.feed(text);
      settle();
    },
    take() {
      const found = items;
      items = [];
      return found;
    },
  };
}
