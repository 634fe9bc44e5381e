/** What tests read out of JSON-RPC messages, and out of the records that hold them. */
import { decodeText } from '@throughline/protocol';
import type { JsonRpcId, JsonRpcMessage, RecordHeader } from '@throughline/protocol';

/** The text of a tool's result. */
export function textOf(message: JsonRpcMessage | undefined): string | null {
  const result = message === undefined || 'method' in message ? undefined : message.result;
  const content = (result as { content?: { text?: string }[] } | undefined)?.content;
  return content?.[0]?.text ?? null;
}

/** The code of a wire error, with whether the call may have run. */
export function errorOf(message: JsonRpcMessage | undefined): { code: unknown; mayHaveRun: unknown } | null {
  const error = message === undefined || 'method' in message ? undefined : message.error;
  if (error === undefined) return null;
  const data = error.data as Record<string, unknown> | undefined;
  return { code: data?.['code'], mayHaveRun: data?.['mayHaveRun'] };
}

/** The progress values among messages. */
export function progressOf(messages: readonly JsonRpcMessage[]): readonly unknown[] {
  return messages.flatMap((message) =>
    'method' in message && message.method === 'notifications/progress' ? [message.params?.['progress']] : [],
  );
}

export function methodsOf(messages: readonly JsonRpcMessage[]): readonly string[] {
  return messages.flatMap((message) => ('method' in message ? [message.method] : []));
}

/** Ids of the requests of the server among messages. */
export function questionsOf(messages: readonly JsonRpcMessage[]): readonly JsonRpcId[] {
  return messages.flatMap((message) => ('method' in message && 'id' in message ? [message.id] : []));
}

/** Ids of the requests that the server took back. */
export function withdrawnOf(messages: readonly JsonRpcMessage[]): readonly unknown[] {
  return messages.flatMap((message) =>
    'method' in message && message.method === 'notifications/cancelled' ? [message.params?.['requestId']] : [],
  );
}

/** The type of a record, as its header says; empty without one. */
export function typeOf(headers: readonly RecordHeader[]): string {
  const type = headers.find(([name]) => name === 'type');
  return type === undefined ? '' : decodeText(type[1]);
}
