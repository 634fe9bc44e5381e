/** The parts of kafkajs 2.2.4 that this driver builds on and that its own types leave out. */
declare module 'kafkajs/src/network/connection.js' {
  import type { Socket } from 'node:net';
  import type { ConnectionOptions } from 'node:tls';

  interface ConnectionLogger {
    namespace(name?: string): ConnectionLogger;
    debug(message: string, extra?: object): void;
    info(message: string, extra?: object): void;
    warn(message: string, extra?: object): void;
    error(message: string, extra?: object): void;
  }
  class Connection {
    constructor(options: {
      host: string;
      port: number;
      logger: ConnectionLogger;
      socketFactory: (args: {
        host: string;
        port: number;
        ssl: ConnectionOptions | null;
        onConnect: () => void;
      }) => Socket;
      requestTimeout: number;
      connectionTimeout: number;
      enforceRequestTimeout: boolean;
      ssl: ConnectionOptions | null;
      sasl: object | null;
      clientId: string;
    });
    /** Milliseconds before the end of its session at which a connection authenticates again. */
    reauthenticationThreshold: number;
    /** A `Long`: milliseconds that the broker gave at the last login, 0 without an end. */
    readonly sessionLifetime: { toString(): string };
    isConnected(): boolean;
    isAuthenticated(): boolean;
    connect(): Promise<unknown>;
    authenticate(): Promise<void>;
    setVersions(versions: Record<number, { minVersion: number; maxVersion: number }>): void;
    setSupportAuthenticationProtocol(isSupported: boolean): void;
    send<T>(call: {
      request: {
        apiKey: number;
        apiName: string;
        apiVersion: number;
        encode(): { buf: Buffer; buffer: Buffer; size(): number };
      };
      response: {
        decode(payload: Buffer): Promise<{ clientSideThrottleTime: number; value: T }>;
        parse(decoded: { value: T }): Promise<T>;
      };
      logResponseError?: boolean;
    }): Promise<T>;
  }
  export default Connection;
}

declare module 'kafkajs/src/network/requestQueue/index.js' {
  class RequestQueue {
    readonly pending: readonly unknown[];
    readonly throttledUntil: number;
    scheduleCheckPendingRequests(): void;
  }
  export default RequestQueue;
}
