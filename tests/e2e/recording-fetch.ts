/** A `fetch` for official clients: says each request where the test wants it, sees every event, and can break connections. */
import { SseParser } from '@throughline/testkit/processes';
import type { SseItem } from '@throughline/testkit/processes';

export interface RecordedAnswer {
  readonly method: string;
  readonly url: string;
  /** `Last-Event-ID` as it was sent. */
  readonly lastEventId: string | null;
  /** 0: there was none, or not yet. */
  readonly status: number;
  /** Events and comments in order, as far as the client read them. */
  readonly items: readonly SseItem[];
  /** When the head of the answer came. */
  readonly atMs: number;
}

export interface RecordingFetch {
  readonly fetch: typeof fetch;
  /** In the order in which they were asked for. */
  readonly answers: readonly RecordedAnswer[];
  /** Every event of every answer, in the order in which the client got them. */
  items(): readonly SseItem[];
  /** Breaks all answers that are open. */
  cut(): void;
}

export interface RecordingOptions {
  /** Where the next request goes. */
  pick(): string;
  /** What is sent instead of a `Last-Event-ID`. May take its time. */
  rewriteCursor?(lastEventId: string): string | Promise<string>;
}

export function createRecordingFetch({ pick, rewriteCursor }: RecordingOptions): RecordingFetch {
  const answers: { -readonly [Field in keyof RecordedAnswer]: RecordedAnswer[Field] }[] = [];
  const all: SseItem[] = [];
  const open = new Set<(error: Error) => void>();

  const record = (answer: Response, items: SseItem[]): Response => {
    if (answer.body === null || answer.headers.get('content-type')?.startsWith('text/event-stream') !== true)
      return answer;
    const parser = new SseParser((item) => {
      items.push(item);
      all.push(item);
    });
    let onCut: (error: Error) => void = () => undefined;
    const passed = answer.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        start(controller) {
          onCut = (error) => {
            controller.error(error);
          };
          open.add(onCut);
        },
        transform(chunk, controller) {
          parser.push(chunk);
          controller.enqueue(chunk);
        },
        flush() {
          open.delete(onCut);
        },
      }),
    );
    return new Response(passed, { status: answer.status, headers: answer.headers });
  };

  return {
    answers,
    items: () => all,
    cut() {
      for (const fail of open) fail(new Error('the test cuts this connection'));
      open.clear();
    },
    fetch: async (_input, init) => {
      const headers = new Headers(init?.headers);
      const lastEventId = headers.get('last-event-id');
      if (lastEventId !== null && rewriteCursor !== undefined)
        headers.set('last-event-id', await rewriteCursor(lastEventId));
      const url = pick();
      const items: SseItem[] = [];
      const method = init?.method ?? 'GET';
      const about = { method, url, lastEventId: headers.get('last-event-id'), items, status: 0, atMs: 0 };
      answers.push(about);
      const answer = await fetch(url, { ...init, headers });
      about.status = answer.status;
      about.atMs = performance.now();
      return record(answer, items);
    },
  };
}

/** Each request goes to the endpoint after that of the request before. */
export function inTurn(urls: () => readonly string[]): () => string {
  let turn = 0;
  return () => {
    const now = urls();
    const url = now[turn++ % Math.max(1, now.length)];
    if (url === undefined) throw new Error('no gateway runs');
    return url;
  };
}
