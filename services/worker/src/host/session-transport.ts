/**
 * The transport between one session and one SDK server. It is structural: it has the members that the `Transport` types
 * of SDK v1 and v2 name, so that servers of both lines connect to it and no SDK is needed here.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { errorResponse, wireError } from '@throughline/protocol';
import type { JsonRpcId, JsonRpcMessage } from '@throughline/protocol';
import type { Logger } from '@throughline/telemetry';
import type { DeliverExtra, HostCallbacks } from './host.ts';
import { cancelledId } from './message-facts.ts';

/** What an SDK server gets with each message; v1 and v2 read the same names. */
interface InboundExtra {
  readonly requestInfo: { readonly headers: Readonly<Record<string, string>> };
  readonly closeSSEStream?: () => void;
  readonly closeStandaloneSSEStream?: () => void;
}

/** The members that SDK servers use of a transport; handlers are installed by the server's `connect`. */
export interface SdkTransport {
  sessionId: string;
  onmessage?: ((message: JsonRpcMessage, extra?: InboundExtra) => void) | undefined;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  start(): Promise<void>;
  send(message: JsonRpcMessage, options?: { readonly relatedRequestId?: JsonRpcId }): Promise<void>;
  close(): Promise<void>;
  setProtocolVersion(version: string): void;
  setSupportedProtocolVersions(versions: readonly string[]): void;
}

export interface SessionTransport {
  /** What the server connects to. */
  readonly sdk: SdkTransport;
  /** Hands a message to the server. Never throws: a request that the server cannot take is answered with an error. */
  deliver(message: JsonRpcMessage, extra: DeliverExtra): void;
  /** Ends the session: the server's handlers are aborted and nothing is sent any more. Idempotent. */
  end(): void;
}

export interface SessionTransportOptions {
  readonly sessionId: string;
  readonly callbacks: HostCallbacks;
  readonly logger: Logger;
  /** The server closed the transport by itself. */
  onClosedByServer(): void;
}

/**
 * The request whose handler runs. SDK v1 and v2 do not tell the transport to which call `elicitInput` and
 * `createMessage` belong, and without that the question could go on a stream that nobody reads.
 */
const currentCall = new AsyncLocalStorage<{ readonly transport: SdkTransport; readonly id: JsonRpcId }>();

const STANDALONE = 'standalone';

export function createSessionTransport(options: SessionTransportOptions): SessionTransport {
  const { callbacks, logger } = options;
  const openCalls = new Set<JsonRpcId>();
  let hasEnded = false;

  const end = (): void => {
    if (hasEnded) return;
    hasEnded = true;
    openCalls.clear();
    // The only place that calls onclose: it aborts every handler of the server for good.
    try {
      sdk.onclose?.();
    } catch (error) {
      logger.warn('host.close-failed', { error });
    }
  };

  /** The call that an outbound message belongs to, as far as it can be known. */
  const relatedOf = (message: JsonRpcMessage, told: JsonRpcId | undefined): JsonRpcId | undefined => {
    if (!('method' in message)) return message.id ?? undefined;
    if (told !== undefined || !('id' in message)) return told;
    const call = currentCall.getStore();
    return call?.transport === sdk && openCalls.has(call.id) ? call.id : undefined;
  };

  const sdk: SdkTransport = {
    sessionId: options.sessionId,
    start: () => Promise.resolve(),
    async send(message, sendOptions) {
      if (hasEnded) return;
      const told = sendOptions?.relatedRequestId;
      // Handlers of SDK v2 go on sending after a cancel. The stream of that call has ended: there is no place for it.
      if ('method' in message && told !== undefined && !openCalls.has(told)) {
        if ('id' in message) throw new Error(`the call that asks ${message.method} is over`);
        return;
      }
      const related = relatedOf(message, told);
      if (!('method' in message) && message.id !== null) openCalls.delete(message.id);
      await callbacks.onMessage(message, related);
    },
    close() {
      const byServer = !hasEnded;
      end();
      if (byServer) options.onClosedByServer();
      return Promise.resolve();
    },
    setProtocolVersion: () => undefined,
    setSupportedProtocolVersions: () => undefined,
  };

  const closersOf = (id: JsonRpcId): Pick<InboundExtra, 'closeSSEStream' | 'closeStandaloneSSEStream'> => ({
    closeSSEStream() {
      if (openCalls.has(id)) callbacks.onCloseStream(id);
    },
    closeStandaloneSSEStream() {
      if (!hasEnded) callbacks.onCloseStream(STANDALONE);
    },
  });

  return {
    sdk,
    end,
    deliver(message, extra) {
      const id = 'method' in message && 'id' in message ? message.id : undefined;
      const cancelled = cancelledId(message);
      if (cancelled !== undefined) openCalls.delete(cancelled);
      const requestInfo = { headers: { 'mcp-session-id': options.sessionId } };
      try {
        if (id === undefined) {
          sdk.onmessage?.(message, { requestInfo });
          return;
        }
        openCalls.add(id);
        // The callback could not tell a request with this id from the standalone stream.
        const mayClose = extra.canPoll && id !== STANDALONE;
        const inbound = mayClose ? { requestInfo, ...closersOf(id) } : { requestInfo };
        currentCall.run({ transport: sdk, id }, () => sdk.onmessage?.(message, inbound));
      } catch (error) {
        logger.error('host.deliver-failed', { error });
        if (id === undefined) return;
        openCalls.delete(id);
        const failure = wireError('SERVER_FAILED', 'the MCP server could not take the request');
        void callbacks.onMessage(errorResponse(id, failure), id);
      }
    },
  };
}
