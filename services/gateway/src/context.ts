/** What the parts of the gateway core share. */
import type { Clock, Log, Random } from '@throughline/log';
import { ackWithin, deadline, errorText, LogError } from '@throughline/log';
import type { Epoch, Offset, RecordInput, SessionId } from '@throughline/protocol';
import { INBOUND_TYPE, makeRecord } from '@throughline/protocol';
import type { HistoryGuard, Meta, PartitionTail, SessionDirectory, TailSet } from '@throughline/tail';
import type { Logger, Metrics } from '@throughline/telemetry';
import { refuse } from './answer-error.ts';
import type { Authenticator } from './auth/authenticator.ts';
import type { GatewayConfig } from './config.ts';
import type { Connections } from './connections.ts';
import type { PrincipalLimits, ShareKey } from './principal-limits.ts';
import type { ServedPartitions } from './served-partitions.ts';
import type { StandaloneStart } from './standalone-start.ts';
import type { TakeoverLimit } from './takeover-limit.ts';

export interface GatewayDeps {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface GatewayContext extends GatewayDeps {
  readonly config: GatewayConfig;
  /** Keys that sign session ids as they are now: the first signs, all verify. */
  secrets(): readonly Uint8Array[];
  readonly authenticator: Authenticator;
  readonly meta: Meta;
  readonly directory: SessionDirectory;
  readonly served: ServedPartitions;
  readonly connections: Connections;
  readonly takeovers: TakeoverLimit;
  readonly limits: PrincipalLimits;
  readonly guard: HistoryGuard;
  readonly standaloneStart: StandaloneStart;
  /** The epoch in force and its tails. */
  current(): { readonly epoch: Epoch; readonly tails: TailSet };
  isDraining(): boolean;
}

/** A verified session as a request names it. */
export interface SessionRef {
  /** The header's text. */
  readonly text: string;
  readonly id: SessionId;
  readonly principal: string;
  readonly server: string;
  /** Whose share this request uses. */
  readonly share: ShareKey;
  /** Wall-clock milliseconds at which the token of this request ends; `null`: never. */
  readonly untilMs: number | null;
  /** Fires when the token of this request is revoked. */
  readonly revoked: AbortSignal | undefined;
}

/**
 * Appends for a client and waits for the ack within the append deadline. Refusals: `LOG_UNAVAILABLE` (nothing was
 * appended, nor will be; or the ack proved that the history broke), `APPEND_UNKNOWN` (it may be; the request may run),
 * `BODY_TOO_LARGE`.
 */
export async function appendForClient(
  context: GatewayContext,
  to: { readonly topic: 'inbound' | 'events'; readonly partition: number },
  records: readonly RecordInput[],
): Promise<readonly Offset[]> {
  const { clock, config, metrics, logger, guard } = context;
  const started = clock.monoMs();
  try {
    const appended = await ackWithin(clock, config.appendTimeoutMs, guard.append(to, records));
    metrics.observe('throughline_gateway_append_seconds', (clock.monoMs() - started) / 1000);
    return appended.offsets;
  } catch (error) {
    if (!(error instanceof LogError)) throw error;
    logger.warn('append failed', {
      topic: to.topic,
      partition: to.partition,
      code: error.code,
      reason: error.details.reason,
      error: error.message,
    });
    if (error.code === 'APPEND_REFUSED' && error.details.reason === 'too-large')
      refuse('BODY_TOO_LARGE', 'The message is larger than a record of the log may be');
    if (error.code === 'APPEND_UNKNOWN') {
      refuse(
        'APPEND_UNKNOWN',
        'The log did not confirm the message in time: it may run. The same request with the same id does not run twice',
        { data: { mayHaveRun: true } },
      );
    }
    return refuse('LOG_UNAVAILABLE', 'The log takes no messages at the moment');
  }
}

/** Refusal: `LOG_UNAVAILABLE`. */
export function refuseBroken(): never {
  return refuse('LOG_UNAVAILABLE', 'The history of the log is being renewed; try again');
}

/** The tail of a session's partition, caught up. Refusal: `LOG_UNAVAILABLE`, at the latest after the append deadline. */
export async function tailOf(context: GatewayContext, partition: number, signal: AbortSignal): Promise<PartitionTail> {
  const limit = deadline(context.clock, context.config.appendTimeoutMs, signal);
  try {
    const tail = await context.current().tails.get(partition, limit.signal);
    if (tail !== null) return tail;
  } catch (error) {
    context.logger.warn('tail not available', {
      partition,
      error: errorText(error),
    });
  } finally {
    limit.dispose();
  }
  return refuse('LOG_UNAVAILABLE', 'The log does not answer at the moment');
}

/**
 * Makes the end of a session known to its worker, which then fails all that is pending in it, and to every gateway.
 * The worker first: a session that gateways refuse while its worker knows nothing would be ended by nobody, since the
 * client's next try meets the refusal. Refusal: `LOG_UNAVAILABLE`.
 */
export async function endSession(
  context: GatewayContext,
  session: SessionRef,
  reason: 'deleted' | 'resumption-rejected',
): Promise<void> {
  const { partition, key } = session.id;
  const end = makeRecord(INBOUND_TYPE.sessionEnd, key, JSON.stringify({ reason }), { server: session.server });
  const work = async (): Promise<void> => {
    await context.guard.append({ topic: 'inbound', partition }, [end]);
    await context.directory.end(partition, key, reason);
  };
  try {
    await ackWithin(context.clock, context.config.appendTimeoutMs, work());
  } catch (error) {
    if (!(error instanceof LogError)) throw error;
    context.logger.warn('the end of a session could not be recorded', {
      partition,
      session: key,
      code: error.code,
      error: error.message,
    });
    refuse('LOG_UNAVAILABLE', 'The end of the session could not be recorded; try again');
  }
}
