/**
 * The one place where kafkajs is driven: a connection to one broker, on which one request is under way at a time. From
 * kafkajs come the socket protocol, TLS and SASL. Its consumers, producers and cluster are not used: consumers join
 * groups and reset positions, producers acknowledge what is not in the log after a failure, the cluster loses all
 * partitions of a topic with one leader, and each opens connections it does not need.
 */
import net from 'node:net';
import type { Socket } from 'node:net';
import tls from 'node:tls';
import Connection from 'kafkajs/src/network/connection.js';
import { correctIdleTimer } from './idle-timer.ts';
import { KafkaFailure } from './kafka-failure.ts';
import type { KafkaClientOptions } from './options.ts';
import { toKafkajsSasl, toTlsOptions } from './options.ts';
import { ByteReader } from './wire/bytes.ts';
import type { WireCall } from './wire/call.ts';
import { apiVersionsCall } from './wire/cluster.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface BrokerConnection {
  readonly address: Address;
  /**
   * Sends a request, after those before it; connects if needed. Rejects with `KafkaFailure` only. After `timeoutMs`
   * the socket is destroyed: what the broker does with the request is then unknown.
   */
  call<T>(call: WireCall<T>, timeoutMs: number): Promise<T>;
  /** Ends at once, also in the middle of a request, which rejects. For good. */
  destroy(): void;
}

const CONNECT_TIMEOUT_MS = 5000;
const KEEP_ALIVE_MS = 60_000;
const PRODUCE = 0;
const API_VERSIONS = 18;

correctIdleTimer();

export function openConnection(options: KafkaClientOptions, address: Address): BrokerConnection {
  const { clock } = options;
  const ssl = toTlsOptions(options.ssl);
  const sasl = toKafkajsSasl(options.sasl);
  const where = `${address.host}:${address.port}`;
  let current: { readonly connection: Connection; readonly end: () => void } | null = null;
  let before: Promise<unknown> = Promise.resolve();
  let isDestroyed = false;

  const make = (): NonNullable<typeof current> => {
    let socket: Socket | null = null;
    let hasEnded = false;
    const tell = (level: 'debug' | 'warn') => (message: string) => {
      if (!hasEnded) options.onLog?.({ level, message, fields: { broker: where } });
    };
    const silent = (): void => undefined;
    const logger = {
      namespace: () => logger,
      debug: silent,
      info: silent,
      warn: tell('debug'),
      error: tell('debug'),
    };
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
    if (current !== null && current.connection.isConnected()) return current.connection;
    drop();
    current = make();
    const { connection } = current;
    await connection.connect();
    const { highest } = await send(connection, apiVersionsCall());
    const versions = [...highest].map(([key, maxVersion]) => [key, { minVersion: 0, maxVersion }] as const);
    connection.setVersions(Object.fromEntries(versions));
    connection.setSupportAuthenticationProtocol(true);
    try {
      await connection.authenticate();
    } catch (error) {
      if (!connection.isConnected() && sasl === null) throw error;
      throw new KafkaFailure('authentication', `${where} does not accept the credentials: ${textOf(error)}`, {
        cause: error,
      });
    }
    return connection;
  };

  const run = async <T>(call: WireCall<T>, timeoutMs: number): Promise<T> => {
    if (isDestroyed) throw new KafkaFailure('closed', 'the connection is closed');
    let wasSent = false;
    let isLate = false;
    const cancel = clock.setTimer(timeoutMs, () => {
      isLate = true;
      drop();
    });
    try {
      const connection = await connect();
      wasSent = true;
      return await send(connection, call);
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
        `${where}, ${call.apiName}: ${textOf(error)}`,
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
      drop();
    },
  };
}

function send<T>(connection: Connection, call: WireCall<T>): Promise<T> {
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
          return Promise.resolve({ clientSideThrottleTime: throttleOf(call.apiKey, payload), value });
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

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
