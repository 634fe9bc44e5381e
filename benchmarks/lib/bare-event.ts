/** What the bare SSE server writes: an event of about 300 bytes. All are of one length. */
const DATA = 'x'.repeat(240);

export function bareEvent(round: number): string {
  return `id: ${String(round).padStart(40, '0')}\ndata: ${DATA}\n\n`;
}
