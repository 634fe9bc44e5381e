import { get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Metrics } from '@throughline/telemetry';
import { describe, expect, it } from 'vitest';
import { createHttpRig, until } from '../testing/http-rig.ts';
import type { HttpRig } from '../testing/http-rig.ts';
import { lastIdOf, messagesOf } from '../testing/sse-reading.ts';

const MIB = 1024 * 1024;

interface Counts {
  readonly metrics: Metrics;
  cut(): number;
  connections(): number;
}

function countMetrics(): Counts {
  let [cut, connections] = [0, 0];
  return {
    metrics: {
      add: (name) => {
        if (name === 'throughline_gateway_stalled_clients_total') cut++;
      },
      set: (name, value) => {
        if (name === 'throughline_gateway_connections') connections = value;
      },
      observe: () => undefined,
    },
    cut: () => cut,
    connections: () => connections,
  };
}

/** Opens the standalone stream and takes nothing of it. */
async function openPaused(rig: HttpRig, session: string, lastEventId?: string): Promise<IncomingMessage> {
  const headers = {
    accept: 'text/event-stream',
    'mcp-session-id': session,
    ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(rig.url, { agent: false, headers }, resolve).on('error', reject);
  });
  response.on('error', () => undefined);
  response.pause();
  return response;
}

async function sayMiB(rig: HttpRig, session: string, from: number, to: number): Promise<void> {
  for (let step = from; step < to; step++)
    await rig.backend.say(session, 's', { jsonrpc: '2.0', method: 'm', params: { step, pad: 'x'.repeat(MIB) } });
}

/** Reads until `step` came; the steps in order of arrival, and the last id. */
async function readThrough(response: IncomingMessage, step: number): Promise<{ steps: number[]; lastId: string }> {
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  response.resume();
  const steps = (): number[] =>
    messagesOf(text.slice(0, text.lastIndexOf('\n\n') + 2)).map(
      ({ data }) => (JSON.parse(data) as { params: { step: number } }).params.step,
    );
  await until(() => text.includes(`"step":${step},`) && steps().at(-1) === step, 60_000);
  response.destroy();
  return { steps: steps(), lastId: lastIdOf(text) };
}

describe('a client that stops taking', () => {
  it('[GW-STALLED] is cut after four times the keepalive, gives its place back, is counted once, and resumes', async () => {
    const counts = countMetrics();
    const rig = await createHttpRig({ keepAliveMs: 250 }, counts.metrics);
    const session = await rig.open();
    const first = await openPaused(rig, session);
    await sayMiB(rig, session, 0, 1);
    const { steps, lastId } = await readThrough(first, 0);
    expect(steps).toEqual([0]);
    await until(() => counts.connections() === 0);
    expect(counts.cut()).toBe(0);
    const stalled = await openPaused(rig, session, lastId);
    await sayMiB(rig, session, 1, 33);
    await until(() => counts.cut() > 0 && counts.connections() === 0, 30_000);
    expect(counts.cut()).toBe(1);
    stalled.destroy();
    const again = await readThrough(await openPaused(rig, session, lastId), 32);
    expect(again.steps).toEqual(Array.from({ length: 32 }, (_, step) => step + 1));
    await rig.stop();
  }, 120_000);

  it('[GW-STALLED] is not cut while it takes a little, though one message takes it longer than that', async () => {
    const counts = countMetrics();
    const rig = await createHttpRig({ keepAliveMs: 250 }, counts.metrics);
    const session = await rig.open();
    const head = `GET /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\nmcp-session-id: ${session}\r\n\r\n`;
    const socket: Socket = await rig.raw(head);
    await until(() => counts.connections() === 1);
    for (let count = 0; count < 4; count++)
      await rig.backend.say(session, 's', { jsonrpc: '2.0', method: 'm', params: { pad: 'x'.repeat(7 * MIB) } });
    let [taken, isClosed] = [0, false];
    socket.on('close', () => (isClosed = true)).on('error', () => (isClosed = true));
    // At most 3 MiB a second.
    const timer = setInterval(() => {
      taken += (socket.read() as Buffer | null)?.length ?? 0;
    }, 20);
    await until(() => isClosed || taken > 28 * MIB, 60_000);
    clearInterval(timer);
    expect(isClosed).toBe(false);
    expect(counts.cut()).toBe(0);
    socket.destroy();
    await rig.stop();
  }, 90_000);

  it('[GW-STALLED] is cut as well when what it does not take is an answer without a stream', async () => {
    const counts = countMetrics();
    const rig = await createHttpRig({ keepAliveMs: 100 }, counts.metrics);
    // Refusals, asked for in one go until they fill the sockets of both sides.
    const ask = `GET /nowhere HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`.repeat(40_000);
    const socket = await rig.raw(ask);
    let isClosed = false;
    socket.on('close', () => (isClosed = true)).on('error', () => (isClosed = true));
    socket.pause();
    await until(() => counts.cut() > 0, 30_000);
    socket.resume();
    await until(() => isClosed);
    await rig.stop();
  }, 60_000);
});
