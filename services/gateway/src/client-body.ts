/** The body of a POST: what kind of messages it holds. Pure. SPEC: GW-BODY, GW-BATCH. */
import { classifyMessage, decodeText, LEGACY_VERSIONS } from '@throughline/protocol';
import type { Classified, JsonRpcId, JsonRpcRequest } from '@throughline/protocol';
import { refuse } from './answer-error.ts';

export interface ClientBody {
  readonly messages: readonly Classified[];
  readonly isBatch: boolean;
}

export const MAX_BATCH = 100;
const MODERN_VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

/** Refusals: `MALFORMED_JSON`, `INVALID_REQUEST` (the message names the fault), `ERA_UNSUPPORTED`. */
export function parseClientBody(body: Uint8Array): ClientBody {
  let value: unknown;
  try {
    value = JSON.parse(decodeText(body));
  } catch {
    return refuse('MALFORMED_JSON', 'The body is not JSON');
  }
  const isBatch = Array.isArray(value);
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
    refuseModern(classified);
    return classified;
  });
  return { messages, isBatch };
}

/** Requests of the era without sessions are told which revisions are served, by that era's own rule. */
function refuseModern(classified: Classified): void {
  if (classified.kind === 'response') return;
  const meta = classified.message.params?.['_meta'];
  if (typeof meta !== 'object' || meta === null || !(MODERN_VERSION_KEY in meta)) return;
  const requested = (meta as Record<string, unknown>)[MODERN_VERSION_KEY];
  const id = classified.kind === 'request' ? { id: classified.message.id } : {};
  refuse('ERA_UNSUPPORTED', 'This server speaks the MCP revisions with sessions', {
    ...id,
    data: { supported: LEGACY_VERSIONS, requested },
  });
}

export function requestsOf(body: ClientBody): readonly JsonRpcRequest[] {
  return body.messages.flatMap((classified) => (classified.kind === 'request' ? [classified.message] : []));
}

export function requestIdsOf(body: ClientBody): readonly JsonRpcId[] {
  return requestsOf(body).map((request) => request.id);
}
