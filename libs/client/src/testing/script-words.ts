/** What is said: by the tools, and by those who have no business on the stream. A check of a client compares with it. Pure. */
import type { JsonRpcId, JsonRpcMessage } from '@throughline/protocol';

/** The `data` of event `n` (1, 2, …). Not ASCII, so that bytes and characters differ. */
export function eventData(n: number): string {
  return `event ${n}: naïve 漢字 ✓`;
}

/** The text of the result of the tool `count`. */
export function countedText(to: number): string {
  return `counted to ${to}`;
}

/** What a call of `count` has on its stream. */
export function countScript(to: number, requestId: JsonRpcId): JsonRpcMessage[] {
  return [...announceScript(to), textResult(requestId, countedText(to))];
}

export function announceScript(to: number): JsonRpcMessage[] {
  return Array.from({ length: to }, (_, index) => logMessage(eventData(index + 1)));
}

/** As long as the true script, and of the same form. */
export function foreignScript(to: number, requestId: JsonRpcId | undefined): JsonRpcMessage[] {
  const events = Array.from({ length: to }, (_, index) => logMessage(`foreign event ${index + 1}`));
  return requestId === undefined ? events : [...events, textResult(requestId, 'foreign result')];
}

/** The same message with another content. */
export function altered(data: string): string {
  const message = JSON.parse(data) as Record<string, unknown>;
  return JSON.stringify(
    'result' in message
      ? { ...message, result: { content: [{ type: 'text', text: 'altered result' }] } }
      : { ...message, params: { level: 'info', logger: 'count', data: 'altered event' } },
  );
}

export function textResult(id: JsonRpcId, text: string, isError = false): JsonRpcMessage {
  return { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }], ...(isError ? { isError } : {}) } };
}

function logMessage(data: string): JsonRpcMessage {
  return { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', logger: 'count', data } };
}
