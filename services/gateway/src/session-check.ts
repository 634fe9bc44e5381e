/** The session that a request names: verified by its own mac, age, epoch and end, with no look-up elsewhere. SPEC: GW-SESSION, GW-VERSION, GW-ENDED. */
import { BATCH_VERSION, HTTP_HEADER, isAcceptedVersion, LEGACY_VERSIONS, verifySessionId } from '@throughline/protocol';
import { refuse } from './answer-error.ts';
import type { GatewayContext, SessionRef } from './context.ts';
import type { GatewayRequest } from './exchange.ts';

export type SessionState = 'lives' | 'ended' | 'former-epoch';

export interface CheckedSession {
  readonly session: SessionRef;
  readonly state: SessionState;
}

const NOT_FOUND = 'No such session; start a new one with initialize';

/**
 * Refusals: `SESSION_REQUIRED` without the header, `SESSION_NOT_FOUND` if the id was not signed here for this principal
 * and server, or is past its maximum life. Whether an ended session matters is the caller's question.
 */
export function checkSession(context: GatewayContext, request: GatewayRequest, principal: string): CheckedSession {
  const text = request.header(HTTP_HEADER.sessionId.toLowerCase());
  if (text === undefined || text === '')
    return refuse(
      'SESSION_REQUIRED',
      `The header ${HTTP_HEADER.sessionId} is needed; it comes with the answer to initialize`,
    );
  const id = verifySessionId(text, { principal, server: request.server }, context.config.secrets);
  if (id === null || id.partition >= context.log.description.partitions) return refuse('SESSION_NOT_FOUND', NOT_FOUND);
  if (context.clock.wallMs() - id.createdMs > context.config.maxLifeMs) return refuse('SESSION_NOT_FOUND', NOT_FOUND);
  const session = { text, id, principal, server: request.server };
  if (id.epoch !== context.current().epoch) return { session, state: 'former-epoch' };
  return { session, state: context.directory.hasEnded(id.partition, id.key) ? 'ended' : 'lives' };
}

export function requireLiving({ session, state }: CheckedSession): SessionRef {
  return state === 'lives' ? session : refuse('SESSION_NOT_FOUND', NOT_FOUND);
}

/**
 * The MCP revision of a request: the negotiated one if this gateway knows it, else the header's, else 2025-03-26. A
 * header that names another served revision than the negotiated changes nothing: clients send a fixed one (the official
 * conformance suite among them). Refusal: `VERSION_UNSUPPORTED` if the header names one that is not served.
 */
export function versionOf(context: GatewayContext, request: GatewayRequest, session: SessionRef): string {
  const header = request.header(HTTP_HEADER.protocolVersion.toLowerCase());
  const negotiated = context.directory.get(session.id.partition, session.id.key)?.record?.version;
  if (header !== undefined && !isAcceptedVersion(header)) {
    refuse(
      'VERSION_UNSUPPORTED',
      `${HTTP_HEADER.protocolVersion} ${JSON.stringify(header.slice(0, 32))} is not supported`,
      { data: { supported: LEGACY_VERSIONS } },
    );
  }
  return negotiated !== undefined && negotiated !== '' ? negotiated : (header ?? BATCH_VERSION);
}
