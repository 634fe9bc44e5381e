/**
 * A TCP proxy that fails as networks do: it passes on, swallows one way or both, refuses, resets, or goes silent after a
 * number of length-framed messages. What it swallows is gone; connections stay open, as half-open ones do.
 */
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export type ProxyMode =
  | 'forward'
  /** What the client says gets nowhere. */
  | 'swallow-requests'
  /** What the target says gets nowhere. */
  | 'swallow-answers'
  | 'swallow-both'
  /** New connections are closed at once; those that are open go on. */
  | 'refuse';

export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** For what is open and for what comes. */
  setMode(mode: ProxyMode): void;
  /** Cuts every connection with a reset. */
  reset(): void;
  /**
   * Counts from here on, and swallows both ways for ever after `frames` messages were passed on; `null`: never. A message
   * is four bytes of length, big-endian, and as many bytes, as in Kafka's protocol.
   */
  stopAfter(frames: number | null): void;
  /** Messages passed on since {@link stopAfter} was called. */
  frames(): number;
  connections(): number;
}

export interface TcpProxyOptions {
  readonly target: { readonly host: string; readonly port: number };
  /** Default: any free one. */
  readonly port?: number;
}

const MOST_CONNECTIONS = 1000;
const LENGTH_BYTES = 4;

export async function startTcpProxy({ target, port = 0 }: TcpProxyOptions): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let mode: ProxyMode = 'forward';
  let limit: number | null = null;
  let passed = 0;

  /** Passes `chunk` on up to the end of the last message that may pass. Whole chunks while nothing is counted down. */
  const makeGate = (isSwallowed: () => boolean): ((chunk: Buffer) => Buffer) => {
    const length = Buffer.alloc(LENGTH_BYTES);
    let lengthRead = 0;
    let bodyLeft = 0;
    return (chunk) => {
      if (isSwallowed()) return Buffer.alloc(0);
      let at = 0;
      while (at < chunk.length) {
        if (limit !== null && passed >= limit) return chunk.subarray(0, at);
        if (bodyLeft === 0 && lengthRead < LENGTH_BYTES) {
          length[lengthRead++] = chunk[at++] ?? 0;
          if (lengthRead < LENGTH_BYTES) continue;
          bodyLeft = length.readUInt32BE(0);
        } else {
          const taken = Math.min(bodyLeft, chunk.length - at);
          at += taken;
          bodyLeft -= taken;
        }
        if (bodyLeft > 0) continue;
        lengthRead = 0;
        passed++;
      }
      return chunk;
    };
  };

  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (mode === 'refuse' || pairs.size >= MOST_CONNECTIONS) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect({ ...target, allowHalfOpen: true });
    const pair = [client, upstream] as const;
    pairs.add(pair);
    const pipe = (from: Socket, to: Socket, swallowing: ProxyMode): void => {
      const isSwallowed = (): boolean => mode === swallowing || mode === 'swallow-both';
      const gate = makeGate(isSwallowed);
      from.on('data', (chunk: Buffer) => {
        const passing = gate(chunk);
        if (passing.length === 0 || to.destroyed) return;
        if (!to.write(passing)) {
          from.pause();
          to.once('drain', () => from.resume());
        }
      });
      from.on('end', () => {
        if (!isSwallowed() && (limit === null || passed < limit)) to.end();
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        pairs.delete(pair);
        to.destroy();
      });
    };
    pipe(client, upstream, 'swallow-requests');
    pipe(upstream, client, 'swallow-answers');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const reset = (): void => {
    for (const [client, upstream] of [...pairs]) {
      client.resetAndDestroy();
      upstream.destroy();
    }
  };
  return {
    port: (server.address() as AddressInfo).port,
    setMode(next) {
      mode = next;
    },
    reset,
    stopAfter(frames) {
      limit = frames;
      passed = 0;
    },
    frames: () => passed,
    connections: () => pairs.size,
    async [Symbol.asyncDispose]() {
      reset();
      await new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    },
  };
}
