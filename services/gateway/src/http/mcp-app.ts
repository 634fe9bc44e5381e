/**
 * The Express shell of the MCP endpoint: paths, body limits, CORS. Everything else is the core's. SPEC: GW-PATH, GW-CORS,
 * GW-LIMIT, GW-BODY-SHARE, GW-PROXY, GW-STALLED, GW-ONE-HEADER, GW-PIPELINE, GW-CONTINUE, AUTH-QUERY.
 */
import express from 'express';
import type { Express, NextFunction, Request, Response } from 'express';
import { HTTP_HEADER } from '@throughline/protocol';
import { errorStack } from '@throughline/log';
import type { Logger, Metrics } from '@throughline/telemetry';
import { isAllowedHost, isAllowedOrigin } from '../admission.ts';
import { answerRefusal, RefusedError } from '../answer-error.ts';
import type { Refusal } from '../answer-error.ts';
import type { Endpoint } from '../auth/authenticator.ts';
import { hasTokenInQuery } from '../auth/judge-token.ts';
import { queryRefusal } from '../auth/refuse-token.ts';
import { endpointsOf } from '../auth/resources.ts';
import { clientAddress, trust } from '../client-address.ts';
import type { IsTrusted } from '../client-address.ts';
import type { GatewayConfig } from '../config.ts';
import type { GatewayCore } from '../core.ts';
import type { GatewayRequest } from '../exchange.ts';
import type { ShareKey, Speaker } from '../principal-limits.ts';
import { BodyBudget } from './body-budget.ts';
import { cutWhenStalled } from './cut-when-stalled.ts';
import { answerPreflight, serveMetadata } from './metadata.ts';
import { NodeSink } from './node-sink.ts';
import { readBody } from './read-body.ts';
import type { BodyOutcome } from './read-body.ts';
import { awaitsContinue, findRepeatedHeader, Pipeline } from './request-shape.ts';

const ALLOWED_HEADERS = [
  'Content-Type',
  'Accept',
  'Authorization',
  HTTP_HEADER.sessionId,
  HTTP_HEADER.protocolVersion,
  HTTP_HEADER.lastEventId,
  // Clients that also speak 2026-07-28 send these with the probe whose refusal they must be able to read.
  'Mcp-Method',
  'Mcp-Name',
  'traceparent',
].join(', ');
const EXPOSED_HEADERS = [
  HTTP_HEADER.sessionId,
  HTTP_HEADER.replayEpoch,
  HTTP_HEADER.replayFrom,
  'WWW-Authenticate',
  'Retry-After',
].join(', ');
const METHODS = 'GET, POST, DELETE, OPTIONS';
/** Bodies held at once, as a multiple of the largest one: 256 MiB by default, and 32 MiB of one share. */
const BODIES_AT_ONCE = 64;
const BODIES_OF_SHARE = 8;
/** A client that takes nothing for as many keepalives is cut: one may be late, and a network may stand still for a while. */
const STALLED_AFTER_KEEPALIVES = 4;
const NO_BODY = Buffer.alloc(0);
/** Without a reason each abort makes an error with a stack, though nobody asks for it. */
const CLOSED = 'the connection is closed';

export interface McpAppTelemetry {
  readonly metrics: Metrics;
  readonly logger: Logger;
}

export function createMcpApp(config: GatewayConfig, core: GatewayCore, { metrics, logger }: McpAppTelemetry): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  // Names of servers may differ in case alone.
  app.enable('case sensitive routing');
  const budget = new BodyBudget({
    most: BODIES_AT_ONCE * config.maxBodyBytes,
    mostOfShare: BODIES_OF_SHARE * config.maxBodyBytes,
  });
  const stalledMs = STALLED_AFTER_KEEPALIVES * config.keepAliveMs;
  const onStalled = (): void => {
    metrics.add('throughline_gateway_stalled_clients_total');
  };
  const pipeline = new Pipeline();
  // Not the setting of Express, by which other headers of a proxy are believed as well.
  const isTrusted = trust(config.trustProxy);
  app.use((request, response, next) => {
    // What happens to a socket is told by `close`; nobody else listens.
    response.on('error', () => undefined);
    cutWhenStalled(response, stalledMs, onStalled);
    const origin = request.headers.origin;
    response.setHeader('Vary', 'Origin');
    if (origin !== undefined && isAllowedOrigin(config, origin) && isAllowedHost(config, request.headers.host)) {
      response.setHeader('Access-Control-Allow-Origin', origin);
      response.setHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS);
    }
    // One that waits to send its body, and is refused, may send something else next: where it begins nobody could tell.
    if (!core.isReady() || awaitsContinue(request.headers.expect)) response.setHeader('Connection', 'close');
    refuseShape(pipeline, request, response);
    next();
  });
  // A body is read only for those who may send one. The core asks the same again: a body may take a minute, in which a
  // token expires, and no caller can say of a request that somebody else has admitted it.
  const admission =
    (endpoint: Endpoint) =>
    (request: Request, response: Response, next: NextFunction): void => {
      if (hasTokenInQuery(request.url)) throw queryRefusal(core.challengeOf(endpoint));
      const onAdmitted = ({ share }: Speaker): void => {
        response.locals['share'] = share;
        next();
      };
      const admitted = core.admit({
        ...endpoint,
        header: (name) => headerValue(request, name),
        clientAddress: () => addressOf(request, isTrusted),
      });
      if (admitted instanceof Promise) admitted.then(onAdmitted, next);
      else onAdmitted(admitted);
    };
  const takeBody = (request: Request, response: Response, next: NextFunction): void => {
    if (request.method !== 'POST') {
      next();
      return;
    }
    const announced = announcedBytes(request);
    const share = response.locals['share'] as ShareKey;
    // Said at once: whoever reads the body would wait for its end first.
    const refused =
      (announced ?? 0) > config.maxBodyBytes
        ? 'too-large'
        : isCompressed(request)
          ? 'compressed'
          : budget.excessOf(share, announced ?? 0);
    if (refused !== null) throw new RefusedError(bodyRefusal(refused, config));
    const room = budget.open(share);
    response.on('close', room.release);
    response.locals['releaseBody'] = room.release;
    if (awaitsContinue(request.headers.expect)) {
      if (core.isReady()) response.removeHeader('Connection');
      response.writeContinue();
    }
    void readBody(request, { room, most: config.maxBodyBytes, announced }).then((body) => {
      if (Buffer.isBuffer(body)) {
        request.body = body;
        next();
        return;
      }
      room.release();
      next(new RefusedError(bodyRefusal(body, config)));
    });
  };
  const handle =
    (endpoint: Endpoint) =>
    (request: Request, response: Response): void => {
      const exchange = new HttpExchange(endpoint, request, response, isTrusted);
      const sink = new NodeSink(response, exchange.signal, () => {
        exchange.forget();
      });
      // Not given back to Express, which would keep its way to this handler for as long as the answer lasts.
      core.handle(exchange, sink).catch((error: unknown) => {
        tellFailure(request, error);
        if (response.headersSent) response.destroy();
        else answer(core, request, response, FAILED);
      });
    };
  // Whoever gets INTERNAL is told that the operator finds the cause in the logs.
  const tellFailure = (request: Request, error: unknown): void => {
    logger.error('request failed', { method: request.method, error: errorStack(error) });
  };
  const paths = endpointsOf(config.servers);
  for (const [path, server] of paths)
    app.all(path, preflight, admission({ server, path }), takeBody, handle({ server, path }));
  serveMetadata(app, config);
  app.use((request, response) => {
    const served = paths.map(([path]) => path).join(', ');
    answer(core, request, response, {
      code: 'PATH_NOT_FOUND',
      message: `Nothing is served at this path; MCP is at ${served}`,
    });
  });
  app.use((error: unknown, request: Request, response: Response, next: NextFunction) => {
    const refusal = refusalOf(error);
    if (refusal === FAILED) tellFailure(request, error);
    if (response.headersSent) next(error);
    else answer(core, request, response, refusal);
  });
  return app;
}

/** A request as the core sees it. */
class HttpExchange implements GatewayRequest {
  readonly server: string;
  readonly path: string;
  readonly signal: AbortSignal;
  readonly #request: Request;
  readonly #response: Response;
  readonly #isTrusted: IsTrusted;
  #body: Uint8Array;

  constructor({ server, path }: Endpoint, request: Request, response: Response, isTrusted: IsTrusted) {
    this.server = server;
    this.path = path;
    this.#request = request;
    this.#response = response;
    this.#isTrusted = isTrusted;
    this.#body = Buffer.isBuffer(request.body) ? request.body : NO_BODY;
    const gone = new AbortController();
    this.signal = gone.signal;
    response.on('close', () => {
      gone.abort(CLOSED);
    });
  }

  get method(): string {
    return this.#request.method;
  }

  get body(): Uint8Array {
    return this.#body;
  }

  header(name: string): string | undefined {
    return headerValue(this.#request, name);
  }

  clientAddress(): string | null {
    return addressOf(this.#request, this.#isTrusted);
  }

  /** The answer begins. A stream may last for hours: it must not keep what asked for it, nor Express' way to here. */
  forget(): void {
    this.#body = NO_BODY;
    this.#request.body = undefined;
    // Not `delete`, which would make the request a dictionary of its own.
    this.#request.next = undefined;
    (this.#response.locals['releaseBody'] as (() => void) | undefined)?.();
  }
}

function refuseShape(pipeline: Pipeline, request: Request, response: Response): void {
  const repeated = findRepeatedHeader(request.rawHeaders);
  if (repeated !== null)
    throw new RefusedError({ code: 'INVALID_REQUEST', message: `The header ${repeated} must stand once` });
  if (!pipeline.enter(request.socket, response))
    throw new RefusedError({
      code: 'CAPACITY',
      message: 'Too many requests of this connection wait for their answers; read those first',
    });
}

const UNREADABLE: Refusal = { code: 'INVALID_REQUEST', message: 'The HTTP request could not be read' };
const FAILED: Refusal = { code: 'INTERNAL', message: 'The gateway failed on this request' };

/** What Express throws. Branches on the status: messages are for people. */
function refusalOf(error: unknown): Refusal {
  if (error instanceof RefusedError) return error.refusal;
  const status = typeof error === 'object' && error !== null && 'status' in error ? error.status : 500;
  return typeof status === 'number' && status >= 400 && status < 500 ? UNREADABLE : FAILED;
}

function bodyRefusal(
  why: Exclude<BodyOutcome, Buffer> | 'compressed',
  { maxBodyBytes }: Pick<GatewayConfig, 'maxBodyBytes'>,
): Refusal {
  switch (why) {
    case 'too-large':
      return { code: 'BODY_TOO_LARGE', message: `The body is larger than ${maxBodyBytes} bytes` };
    case 'compressed':
      return { code: 'UNSUPPORTED_MEDIA_TYPE', message: 'Compressed bodies are not served' };
    case 'gone':
      return UNREADABLE;
    case 'share':
      return {
        code: 'RATE_LIMITED',
        message: `More than ${BODIES_OF_SHARE * maxBodyBytes} bytes of bodies at once of one client are not read here`,
      };
    case 'all':
      return { code: 'CAPACITY', message: 'This gateway reads as many bodies as it may' };
  }
}

function preflight(request: Request, response: Response, next: NextFunction): void {
  if (request.method !== 'OPTIONS') {
    next();
    return;
  }
  // Without an allowed Origin no CORS header was set, and the browser refuses by itself.
  answerPreflight(response, METHODS, ALLOWED_HEADERS);
}

/** The bytes of a body that says how long it is. */
function announcedBytes(request: Request): number | null {
  const length = Number(request.headers['content-length'] ?? NaN);
  return length >= 0 ? length : null;
}

function isCompressed(request: Request): boolean {
  return (request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity';
}

function addressOf(request: Request, isTrusted: IsTrusted): string | null {
  return clientAddress(request.socket.remoteAddress, headerValue(request, 'x-forwarded-for'), isTrusted);
}

function headerValue(request: Request, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Refuses what does not get to the core. */
function answer(core: GatewayCore, request: Request, response: Response, refusal: Refusal): void {
  const status = answerRefusal(new NodeSink(response, new AbortController().signal), refusal);
  core.countRefused(request.method, status);
}
