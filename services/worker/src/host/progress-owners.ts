/**
 * Which open request a progress notification belongs to. On stdio nothing but the progress token tells, and progress that
 * does not go on its call's own stream would not be in order with the call's result. SPEC: HOST-STDIO-PROGRESS.
 */
import type { JsonRpcId, JsonRpcMessage } from '@throughline/protocol';
import { cancelledId, reportedProgressToken, requestedProgressToken } from './message-facts.ts';

export interface ProgressOwners {
  /** Notes a message to the server. */
  sent(message: JsonRpcMessage): void;
  /** The request that a message of the server belongs to, if that is known; forgets answered requests. */
  received(message: JsonRpcMessage): JsonRpcId | undefined;
}

export function createProgressOwners(): ProgressOwners {
  const ownerOfToken = new Map<JsonRpcId, JsonRpcId>();
  const tokenOfOwner = new Map<JsonRpcId, JsonRpcId>();
  const forget = (id: JsonRpcId): void => {
    const token = tokenOfOwner.get(id);
    if (token === undefined) return;
    tokenOfOwner.delete(id);
    if (ownerOfToken.get(token) === id) ownerOfToken.delete(token);
  };
  return {
    sent(message) {
      const cancelled = cancelledId(message);
      if (cancelled !== undefined) forget(cancelled);
      if (!('method' in message) || !('id' in message)) return;
      const token = requestedProgressToken(message);
      if (token === undefined) return;
      ownerOfToken.set(token, message.id);
      tokenOfOwner.set(message.id, token);
    },
    received(message) {
      if (!('method' in message)) {
        if (message.id === null) return undefined;
        forget(message.id);
        return message.id;
      }
      const token = reportedProgressToken(message);
      return token === undefined ? undefined : ownerOfToken.get(token);
    },
  };
}
