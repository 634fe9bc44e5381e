/** The body of a POST: what kind of messages it holds. Pure. SPEC: GW-BODY, GW-BATCH, GW-DEPTH, GW-DENSE, GW-TWICE. */
import { classifyMessage, findClientFault } from '@throughline/protocol';
import type { Classified, JsonRpcId, JsonRpcRequest } from '@throughline/protocol';
import { refuse } from './answer-error.ts';
import { eachToken, shapeOf } from './json-tokens.ts';
import { refuseEraOfMessage } from './refuse-era.ts';
import { hasRepeatedField } from './repeated-fields.ts';

export interface ClientBody {
  readonly messages: readonly Classified[];
  /** The text of each message as it came, on one line: numbers and depth are nobody's business here. */
  readonly texts: readonly Uint8Array[];
  readonly isBatch: boolean;
}

const MAX_BATCH = 100;
/** Levels of arrays and objects in each other. */
const MAX_DEPTH = 512;
/** Names, arrays and objects: as many cost about what the largest body of plain values costs. */
const MAX_PARTS = 100_000;
/** Where no name may stand twice: the message, its params, and what these hold. */
const MESSAGE_LEVELS = 3;
const BATCH_LEVELS = MESSAGE_LEVELS + 1;
const BOUNDS = { depth: MAX_DEPTH, parts: MAX_PARTS, nameLevels: BATCH_LEVELS };
const EXCESS = {
  depth: `The body is nested deeper than ${MAX_DEPTH} levels`,
  density: `The body holds more than ${MAX_PARTS} names, arrays and objects together; send it in parts, or as plain values in few arrays`,
};
/** Bytes that are no UTF-8 are refused, not altered. */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Refusals: `MALFORMED_JSON`, `INVALID_REQUEST` (the message names the fault), `ERA_UNSUPPORTED`. */
export function parseClientBody(body: Uint8Array): ClientBody {
  const { excess, namesAt } = shapeOf(body, BOUNDS);
  if (excess !== null) refuse('INVALID_REQUEST', EXCESS[excess]);
  let value: unknown;
  try {
    value = JSON.parse(UTF8.decode(body));
  } catch {
    return refuse('MALFORMED_JSON', 'The body is not JSON in UTF-8');
  }
  const isBatch = Array.isArray(value);
  if (hasRepeatedField(namesAt, value, isBatch ? BATCH_LEVELS : MESSAGE_LEVELS))
    refuse('INVALID_REQUEST', 'A field stands twice in the message, in its params or in what these hold');
  const entries: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (entries.length === 0) return refuse('INVALID_REQUEST', 'A batch must not be empty');
  if (entries.length > MAX_BATCH) return refuse('INVALID_REQUEST', `A batch has at most ${MAX_BATCH} messages`);
  const messages = entries.map((entry, index) => {
    const classified = classifyMessage(entry);
    if ('fault' in classified)
      return refuse(
        'INVALID_REQUEST',
        isBatch ? `Message ${index} of the batch: ${classified.fault}` : `Not a JSON-RPC message: ${classified.fault}`,
      );
    refuseEraOfMessage(classified);
    const fault = findClientFault(classified);
    const id = classified.kind === 'request' ? { id: classified.message.id } : {};
    if (fault !== null)
      refuse(
        'INVALID_REQUEST',
        isBatch ? `Message ${index} of the batch: ${fault}` : `Not an MCP message: ${fault}`,
        id,
      );
    return classified;
  });
  const text = onOneLine(body);
  return { messages, texts: isBatch ? splitArray(text) : [text], isBatch };
}

const [LF, CR, SPACE, TAB] = [0x0a, 0x0d, 0x20, 0x09];

/** Line ends in JSON stand between tokens only, so a space means the same. */
function onOneLine(json: Uint8Array): Uint8Array {
  if (!json.includes(LF) && !json.includes(CR)) return json;
  return json.map((byte) => (byte === LF || byte === CR ? SPACE : byte));
}

/** The elements of a JSON array, as they stand in its text, which must be valid and on one line. */
function splitArray(json: Uint8Array): Uint8Array[] {
  const elements: Uint8Array[] = [];
  let start = 0;
  eachToken(json, (kind, at, depth) => {
    if (depth !== 1) return true;
    if (kind !== 'open') elements.push(trimmed(json.subarray(start, at)));
    start = at + 1;
    return true;
  });
  return elements;
}

function trimmed(json: Uint8Array): Uint8Array {
  const isSpace = (byte: number | undefined): boolean => byte === SPACE || byte === TAB;
  let [start, end] = [0, json.length];
  while (start < end && isSpace(json[start])) start++;
  while (end > start && isSpace(json[end - 1])) end--;
  return json.subarray(start, end);
}

export function requestsOf(body: ClientBody): readonly JsonRpcRequest[] {
  return body.messages.flatMap((classified) => (classified.kind === 'request' ? [classified.message] : []));
}

/** The id of the only request, for errors that answer the whole body; none if there are several, or none. */
export function idOf(body: ClientBody): { readonly id?: JsonRpcId } {
  const [request, second] = requestsOf(body);
  return request === undefined || second !== undefined ? {} : { id: request.id };
}

/** Places of the requests among the messages, with their ids. */
export function requestIdsOf(body: ClientBody): readonly (readonly [place: number, id: JsonRpcId])[] {
  return body.messages.flatMap((classified, place) =>
    classified.kind === 'request' ? [[place, classified.message.id] as const] : [],
  );
}
