/**
 * The gateway without HTTP: `handle(request, sink)` over the log, with clock and chance as arguments, so that
 * simulation runs the shipped code. SPEC: GW-*.
 */
import { HistoryGuard, Meta, ReadOutages, SessionDirectory, TailSet } from '@throughline/tail';
import type { Epoch } from '@throughline/protocol';
import { abortable, answerWithin, deadline, errorStack, errorText, LogError } from '@throughline/log';
import { checkPlace } from './admission.ts';
import { answerEmpty, answerRefusal, refuse, RefusedError } from './answer-error.ts';
import { Authenticator } from './auth/authenticator.ts';
import type { Endpoint } from './auth/authenticator.ts';
import type { Challenge } from './auth/refuse-token.ts';
import type { Caller } from './auth/judge-token.ts';
import type { AccessChange } from './access-change.ts';
import type { GatewayConfig } from './config.ts';
import { Connections } from './connections.ts';
import { endSession, refuseBroken } from './context.ts';
import type { GatewayContext, GatewayDeps } from './context.ts';
import { CLIENT_GONE } from './exchange.ts';
import type { GatewayRequest, ResponseSink } from './exchange.ts';
import { handleGet } from './get.ts';
import type { Outcome } from './in-place.ts';
import { handlePost } from './post.ts';
import { limitsOf, PrincipalLimits } from './principal-limits.ts';
import type { Speaker } from './principal-limits.ts';
import { checkSession, requireLiving, versionOf } from './session-check.ts';
import { ServedPartitions } from './served-partitions.ts';
import { StandaloneStart } from './standalone-start.ts';
import { TakeoverLimit } from './takeover-limit.ts';

/** What tells whether a request may speak here: all but its body. */
export type RequestHead = Pick<GatewayRequest, 'server' | 'path' | 'header' | 'clientAddress'>;

export interface GatewayCore {
  /**
   * Whom a request speaks for, and whose share it uses, by its head alone; `handle` asks the same again. Throws, or
   * rejects with, a `RefusedError`: `HOST_REFUSED`, `ORIGIN_REFUSED`, `UNAUTHORIZED`, `INSUFFICIENT_SCOPE`, `AUTH_UNAVAILABLE`.
   */
  admit(head: RequestHead): Speaker | Promise<Speaker>;
  /** How clients of an endpoint are told to authorize. */
  challengeOf(endpoint: Pick<GatewayRequest, 'server' | 'path'>): Challenge;
  /** Answers one exchange. Never rejects. */
  handle(request: GatewayRequest, sink: ResponseSink): Promise<void>;
  /** Counts an exchange that was refused before it came here. */
  countRefused(method: string, status: number): void;
  /**
   * Started, epoch known, its history not proved broken, `meta` and `sessions` as they were read, a read of its log
   * answered within 15 s, not draining. Nothing is refused for it, and no stream ends: it is for load balancers.
   */
  isReady(): boolean;
  /** Uses what a file holds now that was read again, from now on. */
  changeAccess(change: AccessChange): void;
  /** Not answered to their end: requests, and open streams. */
  exchanges(): number;
  /**
   * Unready at once; open streams are closed, spread over the drain time. Resolves when no exchange is left, at the
   * latest 1 s after the drain time.
   */
  drain(): Promise<void>;
  /** Stops at once. Idempotent. */
  stop(): Promise<void>;
}

const START_DEADLINE_MS = 30_000;
const SWEEP_MS = 60_000;
/** Three of the waits in which a reader is answered even if nothing comes. */
const CUT_OFF_MS = 15_000;

/** Reads `sessions` and `meta` to their ends, makes the epoch if there is none, and is ready. Rejects if the log does not answer within 30 s. */
export async function startGatewayCore(config: GatewayConfig, given: GatewayDeps): Promise<GatewayCore> {
  const deps = { ...given, log: answerWithin(given.log, given.clock, config.appendTimeoutMs) };
  const { log, clock, logger, metrics } = deps;
  const outages = new ReadOutages({
    clock,
    logger,
    onFailure: (code) => {
      metrics.add('throughline_tail_read_errors_total', 1, { code });
    },
  });
  const { onError, onAnswer } = outages;
  const meta = new Meta({ log, clock, onError, onAnswer });
  // What is found out before there is a guard concerns nobody yet: nothing was served.
  let guarding: HistoryGuard | null = null;
  const partitions = Array.from({ length: log.description.partitions }, (_, partition) => partition);
  const directory = new SessionDirectory({
    log,
    clock,
    partitions,
    maxLifeMs: config.maxLifeMs,
    keepRecords: false,
    onFinding: (finding, partition, readMs) => {
      guarding?.noteView({ topic: 'sessions', partition }, finding, readMs);
    },
    onError,
    onAnswer,
  });
  const start = deadline(clock, START_DEADLINE_MS);
  let epoch: Epoch;
  try {
    epoch = await abortable(meta.ensureEpoch(deps.random, start.signal), start.signal);
    await abortable(directory.sync(start.signal), start.signal);
    // Nobody listens yet: an epoch that came while `sessions` was read would be missed for ever.
    for (let next = meta.epoch() ?? epoch; next !== epoch; next = meta.epoch() ?? epoch) {
      epoch = next;
      directory.doubt();
      await abortable(directory.sync(start.signal), start.signal);
    }
  } catch (error) {
    await Promise.all([meta.close(), directory.close()]);
    if (!start.expired()) throw error;
    throw new LogError('LOG_UNAVAILABLE', `the log did not answer within ${START_DEADLINE_MS / 1000} s`, {}, error);
  } finally {
    start.dispose();
  }

  // Before the listener below: tails of a new epoch are made for a guard that knows of it.
  const guard = new HistoryGuard({
    log,
    clock,
    random: deps.random,
    meta,
    logger,
    onCount: (what, topic) => {
      metrics.add(`throughline_history_${what}_total`, 1, { topic });
    },
  });
  guarding = guard;
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
      onAnswer,
      guard,
    });
  let tails = makeTails(epoch);
  let draining = false;
  let stopped = false;
  const connections = new Connections({
    clock,
    random: deps.random,
    limit: config.maxConnections,
    onCount: (count) => {
      metrics.set('throughline_gateway_connections', count);
    },
  });
  const served = new ServedPartitions({ log, clock, logger, directory, count: partitions.length });
  const authenticator = new Authenticator(config, { clock, logger, metrics });
  let secrets: readonly Uint8Array[] = config.secrets;
  const context: GatewayContext = {
    ...deps,
    config,
    secrets: () => secrets,
    authenticator,
    meta,
    directory,
    served,
    connections,
    takeovers: new TakeoverLimit(clock),
    limits: new PrincipalLimits(limitsOf(config), clock),
    guard,
    standaloneStart: new StandaloneStart(),
    current: () => ({ epoch, tails }),
    isDraining: () => draining,
  };
  metrics.set('throughline_epoch_info', 1, { epoch });
  const stopEpochs = meta.onEpoch((next) => {
    metrics.set('throughline_epoch_info', 0, { epoch });
    metrics.set('throughline_epoch_info', 1, { epoch: next });
    logger.warn('the epoch changed: sessions of the former one have ended', { from: epoch, to: next });
    const former = tails;
    epoch = next;
    metrics.add('throughline_epoch_changes_total');
    tails = makeTails(next);
    // What broke the former one may have made `sessions` anew as well, and let it grow past this view.
    directory.doubt();
    former.stop().catch((error: unknown) => {
      logger.error('the tails of the former epoch could not be stopped', { error: errorText(error) });
    });
  });
  let cancelSweep = clock.setTimer(SWEEP_MS, function sweep() {
    directory.sweep();
    metrics.set('throughline_tail_cache_bytes', tails.cacheBytes());
    metrics.set('throughline_tail_lag', tails.lag());
    cancelSweep = clock.setTimer(SWEEP_MS, sweep);
  });

  const count = (method: string, status: number): void => {
    metrics.add('throughline_gateway_requests_total', 1, { method, status: String(status) });
  };

  return {
    admit: (head) => admit(context, head),
    challengeOf: (endpoint) => authenticator.challengeOf(endpointOf(endpoint)),
    async handle(request, sink) {
      const { method } = request;
      const leave = connections.enter();
      try {
        const outcome = await route(context, request, sink);
        count(method, typeof outcome === 'number' ? outcome : await outcome.run());
      } finally {
        leave();
      }
    },
    countRefused: count,
    isReady: () =>
      !draining && !stopped && !guard.isBroken() && !guard.isViewInDoubt() && outages.silentMs() < CUT_OFF_MS,
    changeAccess(change) {
      if (change.kind === 'tokens') authenticator.replaceTokens(change.tokens);
      else if (change.kind === 'keys') authenticator.replaceKeys(change.issuer, change.keys);
      else secrets = change.secrets;
    },
    exchanges: () => connections.exchanges(),
    async drain() {
      draining = true;
      logger.info('draining', { connections: connections.count(), drainMs: config.drainMs });
      await connections.drain(config.drainMs);
    },
    async stop() {
      if (stopped) return;
      stopped = true;
      cancelSweep();
      stopEpochs();
      served.stop();
      guard.stop();
      await Promise.all([tails.stop(), meta.close(), directory.close()]);
    },
  };
}

/** Ends before a stream runs: one that lasts for hours must not hold what was needed to make it. */
async function route(context: GatewayContext, request: GatewayRequest, to: ResponseSink): Promise<Outcome> {
  const { method } = request;
  const sink = new OnceSink(to);
  try {
    const admitted = admit(context, request);
    // Without a wait where there is nothing to wait for.
    const speaker = admitted instanceof Promise ? await admitted : admitted;
    context.limits.enter(speaker.share);
    if (context.guard.isBroken()) refuseBroken();
    switch (method) {
      case 'POST':
        return await handlePost(context, request, speaker, sink);
      case 'GET':
        return await handleGet(context, request, speaker, sink);
      case 'DELETE':
        return await handleDelete(context, request, speaker, sink);
      default:
        return refuse('METHOD_NOT_ALLOWED', `${method} is not served here`, {
          headers: { Allow: 'POST, GET, DELETE, OPTIONS' },
        });
    }
  } catch (error) {
    const isRefused = error instanceof RefusedError;
    if (!isRefused) {
      context.logger.error('request failed', {
        method,
        error: errorStack(error),
      });
    }
    // Behind a head there is no place for another answer, and without a client there is nobody to tell.
    const isGone = request.signal.aborted;
    if (isGone || sink.hasHead) {
      sink.end();
      return isGone ? CLIENT_GONE : 500;
    }
    return answerRefusal(
      sink,
      isRefused ? error.refusal : { code: 'INTERNAL', message: 'The gateway failed on this request' },
    );
  }
}

function admit({ config, authenticator, limits }: GatewayContext, head: RequestHead): Speaker | Promise<Speaker> {
  checkPlace(config, (name) => head.header(name));
  const caller = authenticator.authenticate(endpointOf(head), head.header('authorization'));
  const speakerOf = (one: Caller): Speaker => ({ ...one, share: limits.shareOf(one.principal, head) });
  return caller instanceof Promise ? caller.then(speakerOf) : speakerOf(caller);
}

function endpointOf({ server, path }: Pick<GatewayRequest, 'server' | 'path'>): Endpoint {
  return { server, path: path ?? `/mcp/${server}` };
}

/** Knows whether an answer has begun. */
class OnceSink implements ResponseSink {
  hasHead = false;
  readonly #to: ResponseSink;

  constructor(to: ResponseSink) {
    this.#to = to;
  }

  head(status: number, headers: Readonly<Record<string, string>>): void {
    this.#to.head(status, headers);
    this.hasHead = true;
  }

  write(text: string): boolean {
    return this.#to.write(text);
  }

  drained(signal: AbortSignal): Promise<void> {
    return this.#to.drained(signal);
  }

  end(): void {
    this.#to.end();
  }
}

/** DELETE: the end of the session is in the log before the answer. SPEC: GW-DELETE. */
async function handleDelete(
  context: GatewayContext,
  request: GatewayRequest,
  speaker: Speaker,
  sink: ResponseSink,
): Promise<number> {
  const session = requireLiving(await checkSession(context, request, speaker));
  versionOf(context, request, session);
  await endSession(context, session, 'deleted');
  return answerEmpty(sink, 204);
}
