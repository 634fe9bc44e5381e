import { signSessionId } from '@throughline/protocol';
import type { Metrics } from '@throughline/telemetry';
import { noMetrics } from '@throughline/telemetry';
import { describe, expect, it } from 'vitest';
import { EPOCH, progress } from './testing/backend.ts';
import { call, createRig, SECRET } from './testing/core-rig.ts';
import type { Exchange } from './testing/core-rig.ts';
import { createHttpRig, until } from './testing/http-rig.ts';
import { lastIdOf } from './testing/sse-reading.ts';

const sessionOf = (run: number): string =>
  signSessionId(
    {
      epoch: EPOCH,
      partition: 0,
      from: 0,
      createdMs: Date.now(),
      key: Buffer.from(String(run).padStart(16)).toString('base64url'),
    },
    { principal: 'anonymous', server: 'demo' },
    SECRET,
  );

/** Counts what the gauge was last set to. */
function gauge(): Metrics & { connections: number; most: number } {
  const metrics = {
    ...noMetrics,
    connections: 0,
    most: 0,
    set(name: string, value: number): void {
      if (name !== 'throughline_gateway_connections') return;
      metrics.connections = value;
      metrics.most = Math.max(metrics.most, value);
    },
  };
  return metrics;
}

describe('1,000 connections that were opened and closed', () => {
  it('[GW-LEAK] leave no timer, no waiting reader and no listener of the core', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    const rig = await createRig();
    await rig.backend.startWorker();
    const metrics = gauge();
    const peer = await rig.gateway({ maxConnections: 2000 }, undefined, metrics);
    const session = await rig.open(peer);
    await rig.time.settle();
    const before = rig.time.pending();
    const exchanges: Exchange[] = [];
    for (let run = 0; run < 500; run++) {
      exchanges.push(await peer.post(session, call(run)));
      exchanges.push(await peer.get(session));
    }
    const watched = exchanges[0]!;
    exchanges.push(await peer.get(session, lastIdOf(watched.sink.text)));
    await rig.backend.say(session, 's', progress(1));
    await rig.time.settle();
    expect(metrics.most).toBeGreaterThan(490);
    for (const exchange of exchanges) exchange.abort();
    await rig.time.run(Promise.all(exchanges.map(({ done }) => done)));
    expect(metrics.connections).toBe(0);
    expect(peer.core.exchanges()).toBe(0);
    expect(rig.time.pending()).toBe(before);
    // A place for everyone is there again.
    for (let run = 0; run < 3; run++) expect((await peer.post(session, call(`x${run}`))).sink.status).toBe(200);
    await rig.stop();
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  it('[GW-LEAK] leave no socket and no count over HTTP, whoever closes', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    const metrics = gauge();
    const rig = await createHttpRig({}, metrics);
    const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
    const before = sockets();
    for (let round = 0; round < 10; round++) {
      const open = await Promise.all(
        Array.from({ length: 100 }, async (_, place) => {
          const gone = new AbortController();
          const headers = { accept: 'text/event-stream', 'mcp-session-id': sessionOf(round * 100 + place) };
          const response = await fetch(rig.url, { headers, signal: gone.signal });
          expect(response.status).toBe(200);
          return { gone, response };
        }),
      );
      await until(() => metrics.connections === 100);
      for (const { gone } of open) gone.abort();
      await until(() => metrics.connections === 0);
    }
    await until(() => sockets() <= before);
    await rig.stop();
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  }, 60_000);
});
