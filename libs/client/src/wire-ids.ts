/**
 * JSON-RPC ids and progress tokens on the wire. In MCP an id is never used twice in a session. A program that is started
 * again counts from 0, so each process but the first marks its own. SPEC: CLIENT-IDS.
 */
import type { JsonRpcId, JsonRpcRequest } from '@throughline/protocol';

/** Ids that differ in type are different ids. */
export function idKey(id: JsonRpcId): string {
  return JSON.stringify(id);
}

/** @param process how many processes served the session before this one. */
export function wireId(id: JsonRpcId, process: number): JsonRpcId {
  if (process === 0) return id;
  return typeof id === 'number' ? `p${process}-${id}` : `p${process}_${id}`;
}

/** What goes out for a request of the application. */
export function wireRequest(message: JsonRpcRequest, process: number): JsonRpcRequest {
  if (process === 0) return message;
  const token = progressToken(message);
  const own = { ...message, id: wireId(message.id, process) };
  if (token === undefined) return own;
  const meta = message.params?.['_meta'] as Readonly<Record<string, unknown>>;
  return { ...own, params: { ...message.params, _meta: { ...meta, progressToken: wireId(token, process) } } };
}

export function progressToken(message: JsonRpcRequest): JsonRpcId | undefined {
  const meta = message.params?.['_meta'] as { readonly progressToken?: unknown } | undefined;
  const token = meta?.progressToken;
  return typeof token === 'string' || typeof token === 'number' ? token : undefined;
}

/** How a request of the server is named to the application: sessions after the first may use the same ids again. */
export function appId(id: JsonRpcId, session: number): JsonRpcId {
  return session === 0 ? id : `s${session}-${typeof id}-${id}`;
}
