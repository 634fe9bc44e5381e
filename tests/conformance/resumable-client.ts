/** An official client on the resumable transport, as a client check wants it. */
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport as TransportV1 } from '@modelcontextprotocol/sdk/shared/transport.js';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { ResumableTransport } from '@throughline/client';
import type { ResumableTransportOptions } from '@throughline/client';
import type { ConnectClient } from '@throughline/client/testing';
import type { ClientLine } from '../e2e/official-client.ts';

/** Below the bound of a check, above the keepalives of its server. */
const LIMITS = { initialDelayMs: 20, maxDelayMs: 200, giveUpMs: 2500, silenceMs: 800, quietMs: 1500 } as const;
const CALL_MS = 30_000;

/** @param policy see `ResumableTransportOptions.policy`. */
export function connectResumable(
  line: ClientLine,
  policy: NonNullable<ResumableTransportOptions['policy']>,
): ConnectClient {
  return async (url, reports) => {
    const transport = new ResumableTransport(url, {
      ...LIMITS,
      policy,
      onSessionLost: reports.refused,
      onUnproven: reports.unproven,
    });
    if (line === 'v1') {
      const client = new ClientV1({ name: 'resumable-v1', version: '1.0.0' });
      client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => reports.event(params.data));
      await client.connect(transport);
      return {
        callTool: async (name, args) =>
          textOf(await client.callTool({ name, arguments: args }, undefined, { timeout: CALL_MS })),
        close: () => client.close(),
      };
    }
    const client = new ClientV2({ name: 'resumable-v2', version: '1.0.0' });
    client.setNotificationHandler('notifications/message', ({ params }) => reports.event(params.data));
    await client.connect(transport);
    return {
      callTool: async (name, args) => textOf(await client.callTool({ name, arguments: args }, { timeout: CALL_MS })),
      close: () => client.close(),
    };
  };
}

function textOf(result: unknown): string {
  const { content } = result as { content?: readonly { readonly text?: string }[] };
  return content?.map(({ text }) => text ?? '').join('\n') ?? '';
}
