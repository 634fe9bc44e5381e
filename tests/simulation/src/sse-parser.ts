/** Server-Sent Events as a client reads them: pieces of any size in, whole events out. Written from the standard, not from our writer. */
export interface SseEvent {
  /** The last id given so far, as the standard says; `''` if none was. */
  readonly id: string;
  /** Whether this very event had an id line. */
  readonly hasId: boolean;
  readonly data: string;
}

export interface SseHandlers {
  onEvent(event: SseEvent): void;
  onRetry(ms: number): void;
  onComment(text: string): void;
}

export function createSseParser(handlers: SseHandlers): { push(text: string): void } {
  let rest = '';
  let id = '';
  let hasId = false;
  let data: string[] = [];
  const takeLine = (line: string): void => {
    if (line === '') {
      if (hasId || data.length > 0) handlers.onEvent({ id, hasId, data: data.join('\n') });
      hasId = false;
      data = [];
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) {
      handlers.onComment(line.slice(1).trimStart());
      return;
    }
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') data.push(value);
    else if (field === 'id') [id, hasId] = [value, true];
    else if (field === 'retry' && /^\d+$/.test(value)) handlers.onRetry(Number(value));
  };
  return {
    push(text) {
      rest += text;
      for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
        takeLine(rest.slice(0, end));
        rest = rest.slice(end + 1);
      }
    },
  };
}
