/** A client that takes nothing holds its place for a bounded time: its connection is cut, and it may resume. SPEC: GW-STALLED. */
import type { Socket } from 'node:net';
import type { ServerResponse } from 'node:http';

/**
 * Cuts the connection of `response` when something waits for its client and the client has taken none of it for
 * `afterMs`, at the latest after twice that. Whatever it takes begins the time anew, also a part of what was written.
 * The socket is reset: a close in order would wait for the same client.
 */
export function cutWhenStalled(response: ServerResponse, afterMs: number, onCut: () => void): void {
  response.setTimeout(afterMs);
  // With a listener, a silence in which nothing waits is not the server's business.
  response.on('timeout', (socket: Socket) => {
    if (response.writableLength === 0) return;
    onCut();
    socket.resetAndDestroy();
  });
}
