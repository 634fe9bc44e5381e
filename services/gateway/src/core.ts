/**
 * The gateway without HTTP: `handle(request, sink)` over the log, with clock and chance as arguments, so that
 * simulation runs the shipped code. SPEC: GW-*.
 */
import { Meta, SessionDirectory, TailSet } from '@throughline/tail';
import type { Epoch } from '@throughline/protocol';
import { deadline } from '@throughline/log';
import { authenticate, isAllowedHost, isAllowedOrigin } from './admission.ts';
import { answerEmpty, answerRefusal, refuse, RefusedError } from './answer-error.ts';
import type { GatewayConfig } from './config.ts';
import { Connections } from './connections.ts';
import { endSession } from './context.ts';
import type { GatewayContext, GatewayDeps } from './context.ts';
import type { GatewayRequest, ResponseSink } from './exchange.ts';
import { handleGet } from './get.ts';
import { handlePost } from './post.ts';
import { checkSession, requireLiving } from './session-check.ts';
import { TakeoverLimit } from './takeover-limit.ts';

export interface GatewayCore {
  /** Answers one exchange. Never rejects. */
  handle(request: GatewayRequest, sink: ResponseSink): Promise<void>;
  /** Started, epoch known, not draining. */
  isReady(): boolean;
  /** Unready at once; open streams are closed, spread over the drain time; resolves when none is left. */
  drain(): Promise<void>;
  /** Stops at once. Idempotent. */
  stop(): Promise<void>;
}

const START_DEADLINE_MS = 30_000;
const SWEEP_MS = 60_000;

/** Reads `sessions` and `meta` to their ends, makes the epoch if there is none, and is ready. Rejects if the log does not answer within 30 s. */
export async function startGatewayCore(config: GatewayConfig, deps: GatewayDeps): Promise<GatewayCore> {
  const { log, clock, logger, metrics } = deps;
  const onError = (error: unknown): void => {
    metrics.add('throughline_tail_read_errors_total', 1, {
      code: error instanceof Error && 'code' in error ? String(error.code) : 'unknown',
    });
    logger.warn('log read failed; trying again', { error: error instanceof Error ? error.message : String(error) });
  };
  const meta = new Meta({ log, clock, onError });
  const partitions = Array.from({ length: log.description.partitions }, (_, partition) => partition);
  const directory = new SessionDirectory({
    log,
    clock,
    partitions,
    maxLifeMs: config.maxLifeMs,
    keepRecords: false,
    onError,
  });
  const start = deadline(clock, START_DEADLINE_MS);
  let epoch: Epoch;
  try {
    epoch = await meta.ensureEpoch(deps.random, start.signal);
    await directory.sync(start.signal);
  } catch (error) {
    await Promise.all([meta.close(), directory.close()]);
    throw error;
  } finally {
    start.dispose();
  }

  const makeTails = (of: Epoch): TailSet =>
    new TailSet({
      log,
      clock,
      meta,
      epoch: of,
      cacheBytes: config.cacheBytes,
      catchUpReaders: config.catchUpReaders,
      onVerdict: (verdict) => {
        metrics.add('throughline_tail_records_total', 1, { verdict });
      },
      onSlowReader: () => {
        metrics.add('throughline_gateway_slow_readers_total');
      },
      onError,
    });
  let tails = makeTails(epoch);
  let draining = false;
  let stopped = false;
  const connections = new Connections(config.maxConnections, (count) => {
    metrics.set('throughline_gateway_connections', count);
  });
  const context: GatewayContext = {
    ...deps,
    config,
    meta,
    directory,
    connections,
    takeovers: new TakeoverLimit(clock),
    current: () => ({ epoch, tails }),
    isDraining: () => draining,
  };
  const stopEpochs = meta.onEpoch((next) => {
    logger.warn('the epoch changed: sessions of the former one have ended', { from: epoch, to: next });
    const former = tails;
    epoch = next;
    tails = makeTails(next);
    former.stop().catch(onError);
  });
  let cancelSweep = clock.setTimer(SWEEP_MS, function sweep() {
    directory.sweep();
    metrics.set('throughline_tail_cache_bytes', tails.cacheBytes());
    cancelSweep = clock.setTimer(SWEEP_MS, sweep);
  });

  return {
    async handle(request, sink) {
      const status = await route(context, request, sink);
      metrics.add('throughline_gateway_requests_total', 1, { method: request.method, status: String(status) });
    },
    isReady: () => !draining && !stopped,
    async drain() {
      draining = true;
      logger.info('draining', { connections: connections.count(), drainMs: config.drainMs });
      await connections.drain(clock, deps.random, config.drainMs);
    },
    async stop() {
      if (stopped) return;
      stopped = true;
      cancelSweep();
      stopEpochs();
      await Promise.all([tails.stop(), meta.close(), directory.close()]);
    },
  };
}

async function route(context: GatewayContext, request: GatewayRequest, sink: ResponseSink): Promise<number> {
  try {
    if (!isAllowedHost(context.config, request.header('host')))
      refuse('HOST_REFUSED', 'The Host header names a host that is not served here; allow it with --allowed-hosts');
    if (!isAllowedOrigin(context.config, request.header('origin')))
      refuse('ORIGIN_REFUSED', 'The Origin is not allowed; allow it with --allowed-origins');
    const principal = authenticate(context.config.tokens, request.header('authorization'));
    switch (request.method) {
      case 'POST':
        return await handlePost(context, request, principal, sink);
      case 'GET':
        return await handleGet(context, request, principal, sink);
      case 'DELETE':
        return await handleDelete(context, request, principal, sink);
      default:
        return refuse('METHOD_NOT_ALLOWED', `${request.method} is not served here`, {
          headers: { Allow: 'POST, GET, DELETE, OPTIONS' },
        });
    }
  } catch (error) {
    if (error instanceof RefusedError) return answerRefusal(sink, error.refusal);
    context.logger.error('request failed', {
      method: request.method,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    return answerRefusal(sink, { code: 'INTERNAL', message: 'The gateway failed on this request' });
  }
}

/** DELETE: the end of the session is in the log before the answer. SPEC: GW-DELETE. */
async function handleDelete(
  context: GatewayContext,
  request: GatewayRequest,
  principal: string,
  sink: ResponseSink,
): Promise<number> {
  const session = requireLiving(checkSession(context, request, principal));
  await endSession(context, session, 'deleted');
  return answerEmpty(sink, 204);
}
