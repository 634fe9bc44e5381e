/** Telling JSON-RPC messages apart without validating what the MCP server behind us will validate anyway. */
import type { JsonRpcErrorObject } from './errors.ts';
import { quoted } from './quoted.ts';
import type { JsonRpcId } from './stream-label.ts';

export interface JsonRpcRequest {
  readonly jsonrpc: '2.0';
  readonly id: JsonRpcId;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}
export interface JsonRpcNotification {
  readonly jsonrpc: '2.0';
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}
export interface JsonRpcResponse {
  readonly jsonrpc: '2.0';
  /** `null` only on an error that answers nothing readable. */
  readonly id: JsonRpcId | null;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}
export type JsonRpcMessage = JsonRpcRequest | JsonRpcNotification | JsonRpcResponse;

export type Classified =
  | { readonly kind: 'request'; readonly message: JsonRpcRequest }
  | { readonly kind: 'notification'; readonly message: JsonRpcNotification }
  | { readonly kind: 'response'; readonly message: JsonRpcResponse };

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A string or an integer, as MCP says; integers beyond 2^53 − 1 were rounded by the parser and would name another call. */
export function isJsonRpcId(value: unknown): value is JsonRpcId {
  return typeof value === 'string' || Number.isSafeInteger(value);
}

/** What is wrong with one that {@link isJsonRpcId} does not take. */
function idFault(field: string, value: unknown): string {
  return typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER
    ? `field ${field} is beyond 2^53 − 1, so it cannot be kept exactly; use a string`
    : `field ${field} must be a string or an integer`;
}

/** Own properties only: what a message holds is what its JSON says, whatever its prototype was made to hold. */
function own(value: object, name: string): unknown {
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

/**
 * What `value` (as `JSON.parse` gives it; `undefined` counts as absent) is, or the fault that makes it no JSON-RPC
 * message. Never throws. What an SDK would drop without an answer is a fault, since its sender would wait for ever.
 * SPEC: REC-MESSAGE.
 */
export function classifyMessage(value: unknown): Classified | { readonly fault: string } {
  if (!isObject(value)) return { fault: 'a JSON-RPC message is an object' };
  if (own(value, 'jsonrpc') !== '2.0') return { fault: 'field jsonrpc must be "2.0"' };
  const id = own(value, 'id');
  const method = own(value, 'method');
  const params = own(value, 'params');
  const hasResult = own(value, 'result') !== undefined;
  const hasError = isObject(own(value, 'error'));
  if (method !== undefined) {
    if (typeof method !== 'string' || method === '') return { fault: 'field method must be a non-empty string' };
    if (hasResult || hasError) return { fault: 'field method excludes the fields result and error' };
    if (params !== undefined && !isObject(params)) return { fault: 'field params must be an object' };
    if (id === undefined) return { kind: 'notification', message: value as unknown as JsonRpcNotification };
    if (!isJsonRpcId(id)) return { fault: idFault('id', id) };
    return { kind: 'request', message: value as unknown as JsonRpcRequest };
  }
  if (!hasResult && !hasError) return { fault: 'one of the fields method, result, error is needed' };
  if (hasResult && hasError) return { fault: 'field result excludes the field error' };
  if (!isJsonRpcId(id) && !(id === null && hasError)) return { fault: idFault('id', id) };
  return { kind: 'response', message: value as unknown as JsonRpcResponse };
}

/** The same of a text; never throws. */
export function classifyText(text: string): Classified | { readonly fault: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: 'the value is not JSON' };
  }
  return classifyMessage(value);
}

export function errorResponse(id: JsonRpcId | null, error: JsonRpcErrorObject): JsonRpcResponse {
  return { jsonrpc: '2.0', id, error };
}

const REQUEST_FIELDS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params']);
const RESPONSE_FIELDS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'result', 'error']);

/**
 * What MCP forbids in a client's message beyond JSON-RPC, and what official servers therefore drop without an answer:
 * unknown fields, a `_meta` that is no object, a progress token that is neither string nor integer. `null`: nothing.
 */
export function findClientFault({ kind, message }: Classified): string | null {
  const known = kind === 'response' ? RESPONSE_FIELDS : REQUEST_FIELDS;
  for (const field of Object.keys(message)) if (!known.has(field)) return `field ${quoted(field, 64)} is unknown`;
  const params = kind === 'response' ? undefined : message.params;
  if (params === undefined || !Object.hasOwn(params, '_meta')) return null;
  const meta = params['_meta'];
  if (!isObject(meta)) return 'field params._meta must be an object';
  if (!Object.hasOwn(meta, 'progressToken') || isJsonRpcId(meta['progressToken'])) return null;
  return idFault('params._meta.progressToken', meta['progressToken']);
}
