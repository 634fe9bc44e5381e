/** Reads SSE text as a client does, strictly: any line that is no field or comment is a fault. */
import { parseEventId } from '@throughline/protocol';
import type { EventId } from '@throughline/protocol';

export interface SseBlock {
  readonly id?: string;
  /** Absent if the block has no `data` line. */
  readonly data?: string;
  readonly retry?: number;
  readonly comment?: string;
}

export interface SseMessage {
  readonly id: string;
  readonly cursor: EventId;
  readonly data: string;
}

/** The complete blocks; what is not complete yet is left out. */
export function readSse(text: string): readonly SseBlock[] {
  const blocks = text.split('\n\n').slice(0, -1);
  return blocks.map((block) => {
    const fields: { id?: string; data?: string; retry?: number; comment?: string } = {};
    for (const line of block.split('\n')) {
      const [, name = '', value = ''] = /^(id|data|retry|): ?(.*)$/s.exec(line) ?? [];
      if (line.startsWith(':')) fields.comment = value;
      else if (name === 'id') fields.id = value;
      else if (name === 'data') fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`;
      else if (name === 'retry') fields.retry = Number(value);
      else throw new TypeError(`not SSE: ${JSON.stringify(line)}`);
    }
    return fields;
  });
}

/** What a client takes as messages: blocks with data. */
export function messagesOf(text: string): readonly SseMessage[] {
  return readSse(text).flatMap(({ id, data }) => {
    if (data === undefined || data === '') return [];
    if (id === undefined) throw new TypeError(`a message without id: ${data.slice(0, 80)}`);
    return [{ id, cursor: cursorOf(id), data }];
  });
}

export function cursorOf(id: string): EventId {
  const cursor = parseEventId(id);
  if (cursor === null) throw new TypeError(`no event id: ${id}`);
  return cursor;
}

/** The id that a client would resume from. */
export function lastIdOf(text: string): string {
  const id = readSse(text).findLast((block) => block.id !== undefined)?.id;
  if (id === undefined) throw new TypeError('no id was sent');
  return id;
}
