import { ResumptionRejected } from '@throughline/client';
import type { ResumptionPolicy } from '@throughline/client';
import { FAULT_NAMES, FAULT_TABLE, formatClientCheck, runClientCheck } from '@throughline/client/testing';
import type { ConnectClient } from '@throughline/client/testing';
import { describe, expect, it } from 'vitest';
import { CLIENT_LINES } from '../e2e/official-client.ts';
import type { ClientLine } from '../e2e/official-client.ts';
import { connectResumable } from '../e2e/resumable-client.ts';

/** Below the bound of the check: the server sends a keepalive every 200 ms. */
const TIMES = { initialDelayMs: 50, maxDelayMs: 400, giveUpMs: 3000, silenceMs: 900, quietMs: 900 } as const;

function connector(line: ClientLine, policy: ResumptionPolicy): ConnectClient {
  return async (url, reports) => {
    const client = await connectResumable(line, url, {
      ...TIMES,
      policy,
      onSessionLost: ({ rejection }) => reports.refused(rejection.reason),
      onUnproven: (notice) => reports.unproven(notice),
      onEvent: ({ message }) => {
        if ('method' in message && message.method === 'notifications/message') reports.event(message.params?.['data']);
      },
    });
    return {
      callTool: async (name, args) => await client.callTool(name, { ...args }),
      close: () => client[Symbol.asyncDispose](),
    };
  };
}

it('[CLIENT-JUDGE] a rejection is known by its class', () => {
  expect(new ResumptionRejected('gap', 'x', { sessionId: null, lastEventId: null })).toBeInstanceOf(Error);
});

describe.each(CLIENT_LINES)('client %s', (line) => {
  describe.each(['strict', 'compatible'] as const)('under %s', (policy) => {
    it.each(['request', 'standalone'] as const)(
      '[CLIENT-LIARS] is fooled by no misbehaviour on a %s stream, runs nothing twice, and can be used afterwards',
      async (stream) => {
        const report = await runClientCheck(connector(line, policy), { stream, atOnce: 6, boundMs: 8000 });
        const shown = formatClientCheck(report);
        expect(report.wrong, shown).toEqual([]);
        expect(
          report.runs.filter(({ isUsableAfter }) => !isUsableAfter),
          shown,
        ).toEqual([]);
        if (stream === 'request') expect(report.runs).toHaveLength(3 * FAULT_NAMES.length);
        // Of what can be proved nothing is merely called unproven.
        for (const { fault, dialect, verdict } of report.runs)
          if (FAULT_TABLE[fault].provable.includes(dialect as never))
            expect(`${fault} ${verdict}`).not.toContain('unproven');
      },
      120_000,
    );
  });
});
