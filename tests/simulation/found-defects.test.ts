/** What simulation found in the product, each as small as it can be told. */
import type { Log } from '@throughline/log';
import { signSessionId } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { EPOCH, OTHER_EPOCH } from '../../services/gateway/src/testing/backend.ts';
import { createRig, SECRET } from '../../services/gateway/src/testing/core-rig.ts';
import { terminalEvents } from '../../services/gateway/src/terminal-events.ts';
import { leavesStart, ToolCatalog } from '../../services/worker/src/consume/tool-catalog.ts';
import { INBOUND, openBench } from '../../services/worker/src/testing/worker-bench.ts';
import { createSseParser } from './src/sse-parser.ts';

describe('errors that a gateway makes for a batch', () => {
  it('[SIM-ENDS] let a client that was cut off between them come back for the rest', () => {
    const stream = { kind: 'request', at: 7 } as const;
    const id = { epoch: EPOCH, partition: 0, offset: 9, stream, tag: new Uint8Array(4) };
    const text = terminalEvents(id, [1, 2, 3], { code: -32000, message: 'over', data: {} });
    const seen: { readonly id: string; readonly answers: unknown }[] = [];
    const parser = createSseParser({
      onEvent: (event) => seen.push({ id: event.id, answers: (JSON.parse(event.data) as { id: unknown }).id }),
      onRetry: () => undefined,
      onComment: () => undefined,
    });
    parser.push(text);
    expect(seen.map(({ answers }) => answers)).toEqual([1, 2, 3]);
    // Only the last one says that nothing is left: whoever resumes there gets 204.
    expect(seen.map(({ id: cursor }) => cursor.split('.')[4] ?? '')).toEqual(['', '', 'end']);
  });
});

describe('a call that a former owner left', () => {
  const call = (name: string): Parameters<typeof leavesStart>[0] => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name },
  });

  it('[SIM-ANSWER] is not said not to have run if the former owner may have known its tool as one without effects', () => {
    const catalog = new ToolCatalog([
      ['write', { readOnly: false, idempotent: false }],
      ['read', { readOnly: true, idempotent: false }],
    ]);
    expect(leavesStart(call('write'), catalog)).toBe(true);
    expect(leavesStart(call('read'), catalog)).toBe(false);
    expect(leavesStart(call('never heard of'), catalog)).toBe(false);
    expect(leavesStart(call('write'), new ToolCatalog())).toBe(false);
  });
});

describe('a gateway that lags', () => {
  it('[SIM-GONE] does not take a session of an epoch that it has not heard of for one of a former epoch', async () => {
    const rig = await createRig();
    try {
      await rig.backend.startWorker();
      let release = (): void => undefined;
      let held: Promise<void> | null = null;
      const lag = (log: Log): Log => ({
        ...log,
        read: async (from, position, options) => {
          const batch = await log.read(from, position, options);
          if (from.topic === 'meta' && held !== null) await held;
          return batch;
        },
      });
      const gateway = await rig.gateway({}, lag);
      held = new Promise((resolve) => {
        release = resolve;
      });
      await rig.backend.rotateEpoch(OTHER_EPOCH, EPOCH);
      const session = signSessionId(
        { epoch: OTHER_EPOCH, partition: 0, from: 0, createdMs: Date.UTC(2026, 0, 1), key: 'AAAAAAAAAAAAAAAAAAAAAA' },
        { principal: 'anonymous', server: 'demo' },
        SECRET,
      );
      const posted = await gateway.post(session, { jsonrpc: '2.0', method: 'notifications/initialized' });
      expect(posted.sink.status, 'answered before it knows the epoch').toBe(0);
      release();
      await rig.time.run(posted.done);
      expect(posted.sink.status).toBe(202);
    } finally {
      await rig.stop();
    }
  });
});

describe('a batch whose first request retention took before it was served', () => {
  it('[SIM-ENDS] ends with an error for that request as well, not only with the answer to the other', async () => {
    const bench = await openBench(1376);
    try {
      const first = await bench.start();
      await bench.open('k', { version: '2025-03-26' });
      first.crash();
      const ask = (id: number): object => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo' } });
      const [at = -1] = await bench.post('k', [ask(1), ask(2)], { version: '2025-03-26' });
      bench.store.controls.evictBefore(INBOUND, at + 1);
      await bench.start();
      const { messages } = await bench.ended(at);
      expect(messages.map((message) => ('id' in message ? message.id : null)).sort()).toEqual([1, 2]);
      expect(messages.find((message) => 'id' in message && message.id === 1)).toMatchObject({
        error: { data: { code: 'OWNER_LOST', mayHaveRun: true } },
      });
    } finally {
      await bench.dispose();
    }
  });
});
