import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { get } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createHttpRig, until } from '../testing/http-rig.ts';
import { messagesOf } from '../testing/sse-reading.ts';

const MIB = 1024 * 1024;

describe('a client that never reads', () => {
  it('[GW-SLOW] 100 MB pass it while less than 1 MiB waits in this process; later it gets all of it once', async () => {
    const answers: ServerResponse[] = [];
    const onRequest = (message: unknown): void => {
      answers.push((message as { response: ServerResponse }).response);
    };
    const rig = await createHttpRig({ cacheBytes: 4 * MIB });
    const session = await rig.open();
    subscribe('http.server.request.start', onRequest);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      get(rig.url, { agent: false, headers: { accept: 'text/event-stream', 'mcp-session-id': session } }, resolve).on(
        'error',
        reject,
      );
    });
    response.pause();
    unsubscribe('http.server.request.start', onRequest);
    const [answer] = answers;
    expect(answers).toHaveLength(1);
    const waiting = (): number => answer!.writableLength + (answer!.socket?.writableLength ?? 0);
    const [count, pad] = [1000, 'x'.repeat(100_000)];
    let most = 0;
    for (let step = 0; step < count; step++) {
      await rig.backend.say(session, 's', { jsonrpc: '2.0', method: 'm', params: { step, pad } });
      if (step % 10 === 0) await new Promise<void>((resolve) => setImmediate(resolve));
      most = Math.max(most, waiting());
    }
    await until(() => waiting() > 0);
    expect(Math.max(most, waiting())).toBeLessThan(MIB);
    // Read on, without keeping what was read.
    let rest = '';
    const steps: number[] = [];
    response.setEncoding('utf8').on('data', (chunk: string) => {
      rest += chunk;
      const end = rest.lastIndexOf('\n\n') + 2;
      if (end < 2) return;
      for (const { data, cursor } of messagesOf(rest.slice(0, end))) {
        const { params } = JSON.parse(data) as { params: { step: number } };
        expect(cursor.seq).toBe(params.step + 1);
        steps.push(params.step);
      }
      rest = rest.slice(end);
      most = Math.max(most, waiting());
    });
    response.resume();
    await until(() => steps.length >= count, 60_000);
    expect(steps).toEqual(Array.from({ length: count }, (_, step) => step));
    expect(most).toBeLessThan(MIB);
    response.destroy();
    await rig.stop();
  }, 90_000);
});
