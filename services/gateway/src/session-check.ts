/** The session that a request names: verified by its own mac, age, epoch and end, with no look-up elsewhere. SPEC: GW-SESSION, GW-VERSION, GW-ENDED. */
import {
  BATCH_VERSION,
  HTTP_HEADER,
  isLegacyVersion,
  isOlderVersion,
  LEGACY_VERSIONS,
  verifySessionId,
} from '@throughline/protocol';
import type { Epoch, Partition } from '@throughline/protocol';
import { deadline, LogError } from '@throughline/log';
import { refuse } from './answer-error.ts';
import type { GatewayContext, SessionRef } from './context.ts';
import type { GatewayRequest } from './exchange.ts';
import type { Speaker } from './principal-limits.ts';
import { refuseEraOfHeader, sayBack } from './refuse-era.ts';

export type SessionState = 'lives' | 'ended' | 'former-epoch';

export interface CheckedSession {
  readonly session: SessionRef;
  readonly state: SessionState;
}

const NOT_FOUND = 'No such session; start a new one with initialize';

/**
 * Refusals: `SESSION_REQUIRED` without the header, `SESSION_NOT_FOUND` if the id was not signed here for this principal
 * and server, or is past its maximum life, `LOG_UNAVAILABLE` (also if its partition was added so lately that this gateway cannot serve it yet). Whether an ended session matters is the caller's question.
 */
export async function checkSession(
  context: GatewayContext,
  request: GatewayRequest,
  speaker: Speaker,
): Promise<CheckedSession> {
  const text = request.header(HTTP_HEADER.sessionId.toLowerCase());
  if (text === undefined || text === '')
    return refuse(
      'SESSION_REQUIRED',
      `The header ${HTTP_HEADER.sessionId} is needed; it comes with the answer to initialize`,
    );
  const { principal, share, untilMs, revoked } = speaker;
  const id = verifySessionId(text, { principal, server: request.server }, context.secrets());
  if (id === null) return refuse('SESSION_NOT_FOUND', NOT_FOUND);
  if (context.clock.wallMs() - id.createdMs > context.config.maxLifeMs) return refuse('SESSION_NOT_FOUND', NOT_FOUND);
  const session = { text, id, principal, server: request.server, share, untilMs, revoked };
  await learnEpoch(context, id.epoch, request.signal);
  if (id.epoch !== context.current().epoch) return { session, state: 'former-epoch' };
  await learnPartition(context, id.partition, request.signal);
  return { session, state: context.directory.hasEnded(id.partition, id.key) ? 'ended' : 'lives' };
}

/**
 * A session of an epoch that this gateway has not heard of was made by a gateway that knows more: to take it for a
 * former one would end what lives. So `meta` is read up to now before anything is said.
 */
async function learnEpoch(context: GatewayContext, epoch: Epoch, signal: AbortSignal): Promise<void> {
  if (epoch === context.current().epoch || context.meta.isFormer(epoch)) return;
  const limit = deadline(context.clock, context.config.appendTimeoutMs, signal);
  try {
    await context.meta.sync(limit.signal);
  } catch {
    refuse('LOG_UNAVAILABLE', 'The log does not answer at the moment');
  } finally {
    limit.dispose();
  }
}

/** A living session of a partition that came later: others serve it, and to deny it would end it for its client. */
async function learnPartition(context: GatewayContext, partition: Partition, signal: AbortSignal): Promise<void> {
  if (context.served.has(partition)) return;
  const limit = deadline(context.clock, context.config.appendTimeoutMs, signal);
  try {
    if (await context.served.serves(partition, limit.signal)) return;
  } catch (error) {
    if (!(error instanceof LogError)) throw error;
  } finally {
    limit.dispose();
  }
  refuse('LOG_UNAVAILABLE', 'The partition of this session is not known to this gateway yet; try again');
}

export function requireLiving({ session, state }: CheckedSession): SessionRef {
  return state === 'lives' ? session : refuse('SESSION_NOT_FOUND', NOT_FOUND);
}

/**
 * The MCP revision of a request: the negotiated one if this gateway knows it, else the header's, else 2025-03-26. A
 * header that names another served revision than the negotiated changes nothing: clients send a fixed one (the official
 * conformance suite among them). One before 2025-03-26 is right only where client and server agreed on it. Refusals:
 * `ERA_UNSUPPORTED` if the header names a later revision, `VERSION_UNSUPPORTED` if it names anything else that is not
 * served.
 */
export function versionOf(context: GatewayContext, request: GatewayRequest, session: SessionRef): string {
  refuseEraOfHeader(request);
  const header = request.header(HTTP_HEADER.protocolVersion.toLowerCase());
  const negotiated = context.directory.get(session.id.partition, session.id.key)?.record?.version;
  if (header !== undefined && !isLegacyVersion(header) && !isAgreed(header, negotiated)) {
    refuse(
      'VERSION_UNSUPPORTED',
      `${HTTP_HEADER.protocolVersion} ${JSON.stringify(header.slice(0, 32))} is not supported`,
      { data: { supported: LEGACY_VERSIONS, requested: sayBack(header) } },
    );
  }
  return negotiated !== undefined && negotiated !== '' ? negotiated : (header ?? BATCH_VERSION);
}

/** Where this gateway does not know what was agreed, the client does. */
function isAgreed(header: string, negotiated: string | undefined): boolean {
  return isOlderVersion(header) && (negotiated === undefined || negotiated === '' || negotiated === header);
}
