/** The few fields of a JSON-RPC message that hosts look at. Messages themselves pass through unchanged. */
import { classifyMessage, isJsonRpcId } from '@throughline/protocol';
import type { Classified, JsonRpcId, JsonRpcMessage } from '@throughline/protocol';

/** What a message is; a message that is none of the three counts as a notification, so that it is still passed on. */
export function kindOf(message: JsonRpcMessage): Classified['kind'] {
  const classified = classifyMessage(message);
  return 'fault' in classified ? 'notification' : classified.kind;
}

/** Parses one JSON text into its messages (a batch has several), or tells why it is none. Never throws. */
export function parseMessages(text: string): readonly JsonRpcMessage[] | { readonly fault: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: 'not JSON' };
  }
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  const messages: JsonRpcMessage[] = [];
  for (const item of items) {
    const classified = classifyMessage(item);
    if ('fault' in classified) return classified;
    messages.push(classified.message);
  }
  return messages;
}

function paramsOf(message: JsonRpcMessage): Readonly<Record<string, unknown>> | undefined {
  return 'method' in message ? message.params : undefined;
}

/** The id that a `notifications/cancelled` names. */
export function cancelledId(message: JsonRpcMessage): JsonRpcId | undefined {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return undefined;
  const id = paramsOf(message)?.['requestId'];
  return isJsonRpcId(id) ? id : undefined;
}

/** The progress token that a request asks with. */
export function requestedProgressToken(message: JsonRpcMessage): JsonRpcId | undefined {
  const meta = paramsOf(message)?.['_meta'];
  if (typeof meta !== 'object' || meta === null) return undefined;
  const token = (meta as Record<string, unknown>)['progressToken'];
  return isJsonRpcId(token) ? token : undefined;
}

/** The progress token that a `notifications/progress` carries. */
export function reportedProgressToken(message: JsonRpcMessage): JsonRpcId | undefined {
  if (!('method' in message) || message.method !== 'notifications/progress') return undefined;
  const token = paramsOf(message)?.['progressToken'];
  return isJsonRpcId(token) ? token : undefined;
}
