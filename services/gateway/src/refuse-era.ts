/**
 * Requests of revisions after the last one with sessions (2026-07-28 and later), by `_meta` or by header: what is served
 * is told in the words of that era, so that a client of both goes on with `initialize`. SPEC: GW-VERSION.
 */
import { HTTP_HEADER, isLaterVersion, LEGACY_VERSIONS } from '@throughline/protocol';
import type { Classified, JsonRpcId } from '@throughline/protocol';
import { refuse } from './answer-error.ts';
import type { GatewayRequest } from './exchange.ts';

const MODERN_VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
/** Characters of what was asked for that are said back: a revision is a date. */
const MAX_SAID_BACK = 32;

/** Refusal: `ERA_UNSUPPORTED` with the id of the request. A revision with sessions in that place says nothing new. */
export function refuseEraOfMessage(classified: Classified): void {
  if (classified.kind === 'response') return;
  const meta = classified.message.params?.['_meta'];
  if (typeof meta !== 'object' || meta === null || !Object.hasOwn(meta, MODERN_VERSION_KEY)) return;
  const requested = (meta as Record<string, unknown>)[MODERN_VERSION_KEY];
  if (typeof requested === 'string' && (LEGACY_VERSIONS as readonly string[]).includes(requested)) return;
  refuseEra(requested, classified.kind === 'request' ? { id: classified.message.id } : {});
}

/** Refusal: `ERA_UNSUPPORTED`. Not asked of `initialize`, which is of the era with sessions whatever the header. */
export function refuseEraOfHeader(request: GatewayRequest): void {
  const requested = request.header(HTTP_HEADER.protocolVersion.toLowerCase());
  if (requested !== undefined && isLaterVersion(requested)) refuseEra(requested, {});
}

function refuseEra(requested: unknown, answered: { readonly id?: JsonRpcId }): never {
  return refuse('ERA_UNSUPPORTED', 'This server speaks the MCP revisions with sessions', {
    ...answered,
    data: { supported: LEGACY_VERSIONS, requested: sayBack(requested) },
  });
}

/** What was asked for, as far as it can be a revision. */
export function sayBack(requested: unknown): string {
  return typeof requested === 'string' ? requested.slice(0, MAX_SAID_BACK) : '';
}
