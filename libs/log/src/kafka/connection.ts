/**
 * The one place where kafkajs is driven: a connection to one broker, on which one request is under way at a time. From
 * kafkajs come the socket protocol, TLS and SASL. Its consumers, producers and cluster are not used: consumers join
 * groups and reset positions, producers acknowledge what is not in the log after a failure, the cluster loses all
 * partitions of a topic with one leader, and each opens connections it does not need.
 */
import type { Address } from './address.ts';
import net from 'node:net';
import type { Socket } from 'node:net';
import tls from 'node:tls';
import { errorText } from '../errors.ts';
import Connection from 'kafkajs/src/network/connection.js';
import { sleep } from '../clock.ts';
import { connectionHint } from './connection-hint.ts';
import { createCourtesy } from './courtesy.ts';
import type { Courtesy } from './courtesy.ts';
import { correctIdleTimer } from './idle-timer.ts';
import { KafkaFailure } from './kafka-failure.ts';
import type { KafkaClientOptions } from './options.ts';
import { toKafkajsSasl, toTlsOptions } from './options.ts';
import { ByteReader } from './wire/bytes.ts';
import type { WireCall } from './wire/call.ts';
import { apiVersionsCall } from './wire/cluster.ts';

export type { Address } from './address.ts';

export interface BrokerConnection {
  readonly address: Address;
  /**
   * Sends a request, after those before it; connects if needed; waits first for as long as the broker asked us to.
   * Rejects with `KafkaFailure` only. After `timeoutMs` from then on the socket is destroyed: what the broker does with
   * the request is then unknown.
   */
  call<T>(call: WireCall<T>, timeoutMs: number): Promise<T>;
  /** Ends at once, also in the middle of a request, which rejects. For good. */
  destroy(): void;
}

const CONNECT_TIMEOUT_MS = 5000;
const KEEP_ALIVE_MS = 60_000;
/** The broker closes a session that is not renewed in time; it takes a renewal once a second at most. */
const RENEW_BEFORE_MS = 10_000;
const PRODUCE = 0;
const API_VERSIONS = 18;

correctIdleTimer();

/**
 * @param courtesy shared by the connections of one log.
 * @param onLost called when the connection is needed again and turns out to be gone.
 */
export function openConnection(
  options: KafkaClientOptions,
  address: Address,
  courtesy: Courtesy = createCourtesy(options.clock),
  onLost: (address: Address) => void = silent,
): BrokerConnection {
  const { clock } = options;
  const ssl = toTlsOptions(options.ssl);
  const sasl = toKafkajsSasl(options.sasl);
  const where = `${address.host}:${address.port}`;
  let current: { readonly connection: Connection; readonly end: () => void } | null = null;
  let before: Promise<unknown> = Promise.resolve();
  let isDestroyed = false;
  const life = new AbortController();
  /** By the broker, on this very connection. */
  let unreadUntilMs = 0;

  const make = (): NonNullable<typeof current> => {
    let socket: Socket | null = null;
    let hasEnded = false;
    const tell = (level: 'debug' | 'warn') => (message: string) => {
      if (!hasEnded) options.onLog?.({ level, message, fields: { broker: where } });
    };
    const logger = {
      namespace: () => logger,
      debug: silent,
      info: silent,
      warn: tell('debug'),
      error: tell('debug'),
    };
    unreadUntilMs = 0;
    const connection = new Connection({
      ...address,
      logger,
      clientId: options.clientId,
      ssl,
      sasl,
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout: 60_000,
      // Deadlines are ours: kafkajs' own check is an interval of 100 ms a connection.
      enforceRequestTimeout: false,
      socketFactory({ host, port, ssl: secure, onConnect }) {
        socket =
          secure === null
            ? net.connect({ host, port }, onConnect)
            : tls.connect({ host, port, ...(net.isIP(host) === 0 ? { servername: host } : {}), ...secure }, onConnect);
        socket.setNoDelay(true);
        socket.setKeepAlive(true, KEEP_ALIVE_MS);
        return socket;
      },
    });
    return {
      connection,
      end() {
        hasEnded = true;
        // With an error, so that kafkajs rejects what is under way; its own disconnect would wait for the answers.
        socket?.destroy(new Error('ended by this client'));
      },
    };
  };

  const drop = (): void => {
    current?.end();
    current = null;
  };

  const connect = async (): Promise<Connection> => {
    if (current?.connection.isConnected() !== true) {
      if (current !== null) onLost(address);
      drop();
      current = make();
      const { connection } = current;
      await connection.connect();
      const { highest } = await send(connection, apiVersionsCall(), silent);
      const versions = [...highest].map(([key, maxVersion]) => [key, { minVersion: 0, maxVersion }] as const);
      connection.setVersions(Object.fromEntries(versions));
      connection.setSupportAuthenticationProtocol(true);
    }
    await login(current.connection);
    return current.connection;
  };

  /** Again on a connection whose session is about to end. */
  const login = async (connection: Connection): Promise<void> => {
    if (sasl === null) return;
    const lifeMs = Number(connection.sessionLifetime.toString());
    // A session shorter than the margin would be renewed before every request.
    connection.reauthenticationThreshold = Math.min(RENEW_BEFORE_MS, Math.floor(lifeMs / 5));
    if (connection.isAuthenticated()) return;
    const refusal = courtesy.refusal();
    if (refusal !== null) throw refusal;
    try {
      await connection.authenticate();
    } catch (error) {
      if (error instanceof KafkaFailure) throw error;
      // kafkajs calls all failures by one name. A broker that refuses says so before it closes.
      if (!connection.isConnected()) throw error;
      const failure = new KafkaFailure('authentication', describeRefusal(where, options, error), { cause: error });
      courtesy.noteRefusal(failure);
      throw failure;
    }
    courtesy.noteLogin();
  };

  const waitForQuota = async (apiKey: number): Promise<void> => {
    const ownMs = unreadUntilMs - clock.monoMs();
    const ms = Math.max(ownMs, courtesy.throttledMs(address, apiKey));
    if (ms > 0) await sleep(clock, ms, life.signal);
  };

  const noteThrottle = (apiKey: number, ms: number): void => {
    if (ms <= 0) return;
    courtesy.noteThrottle(address, apiKey, ms);
    unreadUntilMs = clock.monoMs() + courtesy.throttledMs(address, apiKey);
    options.onLog?.({ level: 'debug', message: 'a quota of the broker is used up', fields: { broker: where, ms } });
  };

  const run = async <T>(call: WireCall<T>, timeoutMs: number): Promise<T> => {
    await waitForQuota(call.apiKey);
    if (isDestroyed) throw new KafkaFailure('closed', 'the connection is closed');
    let wasSent = false;
    let isLate = false;
    let giveUp = (): void => undefined;
    const late = new Promise<never>((_resolve, reject) => {
      giveUp = () => {
        reject(new Error('late'));
      };
    });
    late.catch(() => undefined);
    const cancel = clock.setTimer(timeoutMs, () => {
      isLate = true;
      drop();
      giveUp();
    });
    try {
      const connecting = connect();
      // A login may wait for whoever gives tokens, which closing the socket does not end.
      connecting.catch(() => undefined);
      const connection = await Promise.race([connecting, late]);
      wasSent = true;
      return await send(connection, call, noteThrottle);
    } catch (error) {
      // Whatever went wrong: what comes next on this socket could be taken for another request's answer.
      drop();
      if (isDestroyed) throw new KafkaFailure('closed', 'the connection was closed', { wasSent, cause: error });
      if (isLate)
        throw new KafkaFailure('timeout', `${where} did not answer ${call.apiName} within ${timeoutMs} ms`, {
          wasSent,
          cause: error,
        });
      if (error instanceof KafkaFailure) throw error;
      throw new KafkaFailure(
        error instanceof RangeError ? 'answer' : 'connection',
        `${where}, ${call.apiName}: ${errorText(error)}${connectionHint(error, options, options.brokers.includes(where))}`,
        { wasSent, cause: error },
      );
    } finally {
      cancel();
    }
  };

  return {
    address,
    call(call, timeoutMs) {
      const result = before.then(() => run(call, timeoutMs));
      before = result.catch(() => undefined);
      return result;
    },
    destroy() {
      isDestroyed = true;
      life.abort();
      drop();
    },
  };
}

const silent = (): void => undefined;

function send<T>(
  connection: Connection,
  call: WireCall<T>,
  onThrottled: (apiKey: number, ms: number) => void,
): Promise<T> {
  const { body } = call;
  return connection.send<T>({
    request: {
      apiKey: call.apiKey,
      apiName: call.apiName,
      apiVersion: call.apiVersion,
      encode: () => ({ buf: body, buffer: body, size: () => body.length }),
    },
    response: {
      decode: (payload) => {
        try {
          const value = call.decode(new ByteReader(payload));
          onThrottled(call.apiKey, throttleOf(call.apiKey, payload));
          // The wait is ours: kafkajs would wait within the time that an answer may take.
          return Promise.resolve({ clientSideThrottleTime: 0, value });
        } catch (error) {
          return Promise.reject(error instanceof Error ? error : new Error(String(error)));
        }
      },
      parse: ({ value }) => Promise.resolve(value),
    },
    logResponseError: false,
  });
}

/** Milliseconds that the broker asks us to wait before the next request; it would leave that one unread for as long. */
function throttleOf(apiKey: number, payload: Buffer): number {
  if (apiKey === API_VERSIONS || payload.length < 4) return 0;
  return payload.readInt32BE(apiKey === PRODUCE ? payload.length - 4 : 0);
}

/** Says what to check, and none of it. */
function describeRefusal(where: string, { sasl }: KafkaClientOptions, error: unknown): string {
  const what =
    sasl === undefined || sasl.mechanism === 'oauthbearer'
      ? 'check who issued the token, for whom, and until when it is valid'
      : `check user name and password of ${sasl.username}`;
  const mechanism = sasl?.mechanism.toUpperCase() ?? 'none';
  return `${where} does not accept the credentials (SASL ${mechanism}): ${what}, and that the listener has this mechanism (${errorText(error)})`;
}
