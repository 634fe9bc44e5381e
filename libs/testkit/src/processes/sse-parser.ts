/**
 * Server-Sent Events as the HTML standard reads them. Written apart from the product and from the parsers that clients
 * use, so that a test judges by the standard.
 */
export interface SseItem {
  /** `comment`: `data` is its text. */
  readonly kind: 'event' | 'comment';
  /** `id:` of this very event; `undefined` if it has none. */
  readonly id?: string;
  readonly event?: string;
  readonly data: string;
  readonly retryMs?: number;
}

interface Draft {
  id?: string;
  event?: string;
  data?: string[];
  retryMs?: number;
}

export class SseParser {
  readonly #onItem: (item: SseItem) => void;
  readonly #decoder = new TextDecoder();
  #rest = '';
  #draft: Draft = {};

  constructor(onItem: (item: SseItem) => void) {
    this.#onItem = onItem;
  }

  push(chunk: Uint8Array): void {
    this.#rest += this.#decoder.decode(chunk, { stream: true });
    for (;;) {
      const match = /\r\n|\n|\r(?!$)/.exec(this.#rest);
      if (match === null) return;
      const line = this.#rest.slice(0, match.index);
      this.#rest = this.#rest.slice(match.index + match[0].length);
      this.#line(line);
    }
  }

  #line(line: string): void {
    if (line === '') {
      this.#dispatch();
      return;
    }
    if (line.startsWith(':')) {
      this.#onItem({ kind: 'comment', data: line.slice(1).trimStart() });
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') (this.#draft.data ??= []).push(value);
    else if (field === 'id') this.#draft.id = value;
    else if (field === 'event') this.#draft.event = value;
    else if (field === 'retry' && /^[0-9]+$/.test(value)) this.#draft.retryMs = Number(value);
  }

  #dispatch(): void {
    const { id, event, data, retryMs } = this.#draft;
    this.#draft = {};
    if (id === undefined && data === undefined && retryMs === undefined) return;
    this.#onItem({
      kind: 'event',
      data: (data ?? []).join('\n'),
      ...(id === undefined ? {} : { id }),
      ...(event === undefined ? {} : { event }),
      ...(retryMs === undefined ? {} : { retryMs }),
    });
  }
}
