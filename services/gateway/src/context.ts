/** What the parts of the gateway core share. */
import type { Clock, Log, Random } from '@throughline/log';
import { LogError } from '@throughline/log';
import type { Epoch, Offset, RecordInput, SessionId } from '@throughline/protocol';
import { INBOUND_TYPE, makeRecord } from '@throughline/protocol';
import type { PartitionTail } from '@throughline/tail';
import type { Meta, SessionDirectory, TailSet } from '@throughline/tail';
import type { Logger, Metrics } from '@throughline/telemetry';
import { refuse } from './answer-error.ts';
import type { GatewayConfig } from './config.ts';
import type { Connections } from './connections.ts';
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
  readonly meta: Meta;
  readonly directory: SessionDirectory;
  readonly connections: Connections;
  readonly takeovers: TakeoverLimit;
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
}

/**
 * Appends for a client and waits for the ack within the append deadline. Refusals: `LOG_UNAVAILABLE` (nothing was
 * appended, nor will be), `APPEND_UNKNOWN` (it may be; the request may run).
 */
export async function appendForClient(
  context: GatewayContext,
  to: { readonly topic: 'inbound' | 'events'; readonly partition: number },
  records: readonly RecordInput[],
): Promise<readonly Offset[]> {
  const { log, clock, config, metrics, logger } = context;
  const started = clock.monoMs();
  try {
    const appended = await withDeadline(context, config.appendTimeoutMs, log.append(to, records));
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
    return refuse('LOG_UNAVAILABLE', 'The log takes no messages at the moment; nothing was appended');
  }
}

async function withDeadline<T>(context: GatewayContext, ms: number, work: Promise<T>): Promise<T> {
  let cancel = (): void => undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    cancel = context.clock.setTimer(ms, () => {
      reject(new LogError('APPEND_UNKNOWN', `no ack within ${ms} ms`));
    });
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    cancel();
  }
}

/** The tail of a session's partition, caught up. Refusal: `LOG_UNAVAILABLE`. */
export async function tailOf(context: GatewayContext, partition: number, signal: AbortSignal): Promise<PartitionTail> {
  try {
    const tail = await context.current().tails.get(partition, signal);
    if (tail !== null) return tail;
  } catch (error) {
    context.logger.warn('tail not available', {
      partition,
      error: error instanceof Error ? error.message : String(error),
    });
  }
  return refuse('LOG_UNAVAILABLE', 'The log does not answer at the moment');
}

/** Makes the end of a session known to every gateway and to its worker, which then fails all that is pending in it. */
export async function endSession(
  context: GatewayContext,
  session: SessionRef,
  reason: 'deleted' | 'resumption-rejected',
): Promise<void> {
  const { partition, key } = session.id;
  const end = makeRecord(INBOUND_TYPE.sessionEnd, key, JSON.stringify({ reason }), { server: session.server });
  try {
    await withDeadline(
      context,
      context.config.appendTimeoutMs,
      Promise.all([
        context.directory.end(partition, key, reason),
        context.log.append({ topic: 'inbound', partition }, [end]),
      ]),
    );
  } catch (error) {
    if (!(error instanceof LogError)) throw error;
    refuse('LOG_UNAVAILABLE', 'The end of the session could not be recorded; try again');
  }
}
