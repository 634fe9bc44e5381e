/** Questions of a server that will not take the answer any more. SPEC: WRK-END, WRK-WITHDRAW. */
import type { JsonRpcId } from '@throughline/protocol';
import type { HostedSession, OutgoingRequest } from './hosted-session.ts';

/** The message that tells the client so. */
function withdrawal(requestId: JsonRpcId, reason: string): string {
  return JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason } });
}

/** Withdraws those open questions of the session that `isOver` names. */
export function withdraw(
  session: HostedSession,
  reason: string,
  isOver: (request: OutgoingRequest) => boolean,
  say: (request: OutgoingRequest, json: string) => void,
): void {
  for (const [id, request] of session.outgoing) {
    if (!isOver(request)) continue;
    session.outgoing.delete(id);
    say(request, withdrawal(id, reason));
  }
}
