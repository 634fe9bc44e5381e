/** What the shape of a request on its connection says before anybody reads it: pure decisions, and the requests that wait on a connection. SPEC: GW-ONE-HEADER, GW-PIPELINE. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Headers with one value by their nature, all of which decide something here. */
const SINGLE_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'origin',
  'authorization',
  'content-type',
  'content-encoding',
  'mcp-session-id',
  'mcp-protocol-version',
  'last-event-id',
]);

/**
 * The name of a header that stands more than once although it has one value; `null` if none does. Proxies differ in
 * which of two they look at: what one of them checked need not be what is used here.
 * @param raw names and values in turn, as Node keeps them.
 */
export function findRepeatedHeader(raw: readonly string[]): string | null {
  let seen = '';
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    if (!SINGLE_HEADERS.has(name)) continue;
    const mark = `${name}\n`;
    if (seen.includes(`\n${mark}`) || seen.startsWith(mark)) return name;
    seen += mark;
  }
  return null;
}

/** Requests of one connection that wait behind the one that is being answered. Clients and proxies send one after the other. */
const MAX_QUEUED = 32;

/**
 * Bounds the requests that a client sent before it had the answer to the one before: one that reads no answers would have
 * as many under way as it can write. Where refusals pile up instead, Node stops reading the connection.
 */
export class Pipeline {
  readonly #queued = new WeakMap<Socket, number>();

  /** `false`: one too many. */
  enter(socket: Socket, response: ServerResponse): boolean {
    // It is its turn: the usual case, which costs nothing.
    if (response.socket !== null) return true;
    const before = this.#queued.get(socket) ?? 0;
    if (before >= MAX_QUEUED) return false;
    this.#queued.set(socket, before + 1);
    response.once('close', () => {
      this.#queued.set(socket, (this.#queued.get(socket) ?? 1) - 1);
    });
    return true;
  }
}

/** Whether the client sends its body only when it is told to go on. */
export function awaitsContinue(expect: string | undefined): boolean {
  return expect?.toLowerCase() === '100-continue';
}
