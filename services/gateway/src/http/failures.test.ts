/** Defects between the socket and the core: what a client is told of them, and what the operator finds. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { noMetrics } from '@throughline/telemetry';
import { describe, expect, it } from 'vitest';
import { GatewayConfigSchema } from '../config.ts';
import type { GatewayCore } from '../core.ts';
import { call, recordingLogger, SECRET } from '../testing/core-rig.ts';
import type { LogLine } from '../testing/core-rig.ts';
import { HEADERS } from '../testing/http-rig.ts';
import { createMcpApp } from './mcp-app.ts';

const broken = (): never => {
  throw new TypeError('a defect');
};
const CORE: GatewayCore = {
  admit: () => ({ principal: 'anonymous', untilMs: null, share: null }),
  challengeOf: () => ({ metadataUrl: null, requiredScopes: [] }),
  handle: () => Promise.resolve(),
  countRefused: () => undefined,
  isReady: () => true,
  changeAccess: () => undefined,
  exchanges: () => 0,
  drain: () => Promise.resolve(),
  stop: () => Promise.resolve(),
};

async function post(core: GatewayCore, lines: LogLine[]): Promise<Response> {
  const config = GatewayConfigSchema.parse({ servers: ['demo'], secrets: [SECRET] });
  const server = createServer(createMcpApp(config, core, { metrics: noMetrics, logger: recordingLogger(lines) }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    return await fetch(url, { method: 'POST', headers: HEADERS, body: JSON.stringify(call(1)) });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe('a defect', () => {
  it.each<[string, Partial<GatewayCore>]>([
    ['while a caller is judged', { admit: broken }],

    ['while a signature is checked', { admit: async () => broken() }],

    ['behind the core', { handle: async () => broken() }],
  ])('[GW-FAILED] %s is 500 without its words, and a line of the log with them', async (_, parts) => {
    const lines: LogLine[] = [];
    const response = await post({ ...CORE, ...parts }, lines);
    const text = await response.text();
    expect([response.status, JSON.parse(text)]).toMatchObject([500, { error: { data: { code: 'INTERNAL' } } }]);
    expect(text).not.toContain('a defect');
    expect(lines).toEqual([
      {
        level: 'error',
        event: 'request failed',
        fields: { method: 'POST', error: expect.stringContaining('a defect') as string },
      },
    ]);
  });
});
