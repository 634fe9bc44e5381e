/** The text of Server-Sent Events, with LF; how it becomes bytes is the connection's matter. Pure. */

export interface StreamEvent {
  readonly id: string;
  /** One line: the JSON of a message. */
  readonly data: string;
}

/** @param data one line. */
export function eventText(id: string, data: string): string {
  return `id: ${id}\ndata: ${data}\n\n`;
}

export function primerText(id: string, retryMs: number): string {
  return `id: ${id}\nretry: ${retryMs}\ndata: \n\n`;
}

export function commentText(text: string): string {
  return `: ${text}\n\n`;
}
