/** The text of Server-Sent Events. Pure. SPEC: GW-SSE. */

/** Line ends inside data as the client will see them: LF. What the chain is computed over. */
export function normalizeData(text: string): string {
  return text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;
}

/**
 * An event. `data` is normalized. Empty data moves the client's cursor and delivers nothing.
 * @param id `null`: the client's cursor stays where it is.
 */
export function formatEvent(id: string | null, data: string): string {
  const head = id === null ? '' : `id: ${id}\n`;
  if (!data.includes('\n')) return `${head}data: ${data}\n\n`;
  return `${head}${data
    .split('\n')
    .map((line) => `data: ${line}\n`)
    .join('')}\n`;
}

/** Tells the client how long to wait before it reconnects. */
export function formatRetry(ms: number): string {
  return `retry: ${Math.round(ms)}\n\n`;
}

export function formatPrimer(id: string, retryMs: number): string {
  return `id: ${id}\nretry: ${Math.round(retryMs)}\ndata: \n\n`;
}

export function formatComment(text: string): string {
  return `: ${text}\n\n`;
}
