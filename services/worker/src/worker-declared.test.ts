/** What a server asks of a client that did not declare that it can do it. */
import { afterEach, describe, expect, it } from 'vitest';
import type { JsonRpcMessage, Offset } from '@throughline/protocol';
import { noMetrics } from '@throughline/telemetry';
import type { Metrics } from '@throughline/telemetry';
import { createRecordingLogger } from './host/testing/host-driver.ts';
import { methodsOf, textOf } from './testing/messages.ts';
import type { ScriptStep } from './testing/scripted-host.ts';
import { openBench } from './testing/worker-bench.ts';
import type { Bench, BenchWorker, WorkerChoice } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const QUICK = { heartbeatMs: 100, deadAfterMs: 400 };
const ASK = 'elicitation/create';

async function openWith(
  seed: number,
  capabilities: Readonly<Record<string, unknown>>,
  choice: WorkerChoice = {},
): Promise<BenchWorker> {
  bench = await openBench(seed);
  const worker = await bench.start({ config: QUICK, ...choice });
  await bench.open('k', { capabilities });
  return worker;
}
const converse = (script: readonly ScriptStep[], more: object = {}, id = 1): Promise<Offset> =>
  bench.call('k', id, 'converse', { script, ...more });
const said = (at: Offset): readonly JsonRpcMessage[] => bench.stream(`r${at}`).messages;
/** What the server heard in answer to what it asked. */
const heard = (worker: BenchWorker): readonly JsonRpcMessage[] =>
  worker.host.opened.flatMap(({ received }) => received.filter((message) => !('method' in message)));

describe('a request of the server that its client did not declare', () => {
  it.each([
    ['roots/list', { elicitation: {} }, { roots: {} }],
    ['sampling/createMessage', { roots: {} }, { sampling: {} }],
    ['elicitation/create', { sampling: {} }, { elicitation: { form: {} } }],
    ['tasks/get', { elicitation: {} }, { tasks: {} }],
  ])('[WRK-DECLARED] [MCP-L3] %s: the server hears at once, and the client nothing', async (method, can, required) => {
    const worker = await openWith(1, can);
    await bench.attach('k');
    const at = await converse([{ ask: 'may I?', method }, { log: 'goes on' }]);
    const { messages, ends } = await bench.ended(at);
    expect(heard(worker)).toMatchObject([
      { id: 1, error: { code: -32601, data: { code: 'CAPABILITY_UNDECLARED', requiredCapabilities: required } } },
    ]);
    expect([methodsOf(messages), ends]).toEqual([['notifications/message'], 1]);
    expect(textOf(messages[1])).toContain(`did not declare the capability ${Object.keys(required)[0]}`);
    expect(methodsOf(bench.stream('s').messages)).toEqual([]);
  });

  it('[WRK-DECLARED] a use that the client did not declare is refused as such, the others are asked', async () => {
    const worker = await openWith(2, { elicitation: {} });
    const at = await bench.call('k', 1, 'hang');
    await bench.until(() => bench.runs.length === 1);
    const [server] = worker.host.opened;
    await server?.say({ id: 'u', method: ASK, params: { mode: 'url', url: 'https://example.com' } }, 1);
    await server?.say({ id: 'f', method: ASK, params: { message: 'name?' } }, 1);
    await bench.until(() => said(at).length === 1 && heard(worker).length === 1);
    expect(heard(worker)).toMatchObject([
      { id: 'u', error: { code: -32602, data: { requiredCapabilities: { elicitation: { url: {} } } } } },
    ]);
    expect(said(at)).toMatchObject([{ method: ASK, params: { message: 'name?' } }]);
  });

  it('[WRK-DECLARED] is logged once a session and capability, and counted every time', async () => {
    const reasons: unknown[] = [];
    const add: Metrics['add'] = (name, _by, labels) => {
      if (name === 'throughline_worker_dropped_total') reasons.push(labels?.['reason']);
    };
    const { logger, lines } = createRecordingLogger();
    const worker = await openWith(3, {}, { metrics: { ...noMetrics, add }, logger });
    for (const method of ['roots/list', ASK, 'roots/list', 'roots/list']) await worker.host.opened[0]?.ask(method);
    await bench.until(() => heard(worker).length === 4);
    expect(reasons).toEqual(Array.from({ length: 4 }, () => 'capability-undeclared'));
    const told = lines.filter(({ fields }) => fields['capability'] !== undefined);
    expect(told.map(({ fields }) => [fields['session'], fields['method'], fields['capability']])).toEqual([
      ['k', 'roots/list', 'roots'],
      ['k', ASK, 'elicitation.form'],
    ]);
  });

  it('[WRK-DECLARED] what MCP names no capability for is asked of everybody', async () => {
    const worker = await openWith(4, {});
    await bench.attach('k');
    await worker.host.opened[0]?.ask('ping');
    await worker.host.opened[0]?.ask('vendor/ask');
    await bench.time.advance(100);
    expect(methodsOf(bench.stream('s').messages)).toEqual(['ping', 'vendor/ask']);
  });

  it('[WRK-DECLARED] is known before the server has answered initialize', async () => {
    bench = await openBench(5);
    const worker = await bench.start({ config: QUICK, host: { ignores: new Set(['initialize']) } });
    const params = { protocolVersion: '2025-11-25', capabilities: { roots: {} } };
    const [at = -1] = await bench.post('k', { jsonrpc: '2.0', id: 0, method: 'initialize', params });
    await bench.until(() => worker.host.opened.length === 1);
    await bench.time.advance(100);
    await worker.host.opened[0]?.ask('roots/list');
    await worker.host.opened[0]?.ask('sampling/createMessage');
    await bench.until(() => heard(worker).length === 1);
    expect(methodsOf(said(at))).toEqual(['roots/list']);
    expect(heard(worker)).toMatchObject([{ id: 2, error: { code: -32601 } }]);
  });
});

describe('after a takeover', () => {
  it('[WRK-DECLARED] the new owner knows what the client declared to the former one', async () => {
    const first = await openWith(6, { sampling: {} });
    first.crash();
    const second = await bench.start({ config: QUICK });
    const at = await converse([
      { ask: 'roots?', method: 'roots/list' },
      { ask: 'what?', method: 'sampling/createMessage' },
    ]);
    await bench.until(() => said(at).length === 1);
    expect(methodsOf(said(at))).toEqual(['sampling/createMessage']);
    expect(heard(second)).toMatchObject([{ error: { data: { requiredCapabilities: { roots: {} } } } }]);
  });

  it.each([
    ['tells whose its messages are', {}],
    ['does not', { related: false }],
  ])('[WRK-DECLARED] [WRK-MEMORY] a call that was refused repeats itself, where its server %s', async (_how, more) => {
    const first = await openWith(7, { elicitation: {} });
    const at = await converse(
      [{ log: 'begin' }, { ask: 'roots?', method: 'roots/list' }, { ask: 'name?' }, { log: 'end' }],
      more,
    );
    await bench.until(() => methodsOf(said(at)).includes(ASK));
    first.crash();
    const second = await bench.start({ config: QUICK });
    await bench.until(() => heard(second).length === 1);
    const asked = said(at).find((message) => 'method' in message && message.method === ASK);
    await bench.post('k', { jsonrpc: '2.0', id: (asked as { id?: unknown }).id, result: { text: 'Ada' } });
    const { messages, ends } = await bench.ended(at);
    expect(methodsOf(messages)).toEqual(['notifications/message', ASK, 'notifications/message']);
    expect([textOf(messages[3]), ends]).toEqual([
      'The client did not declare the capability roots; it was not asked,Ada',
      1,
    ]);
  });

  it('[WRK-DECLARED] [WRK-MEMORY-STDIO] what a server asks of itself when it starts fails no call', async () => {
    const first = await openWith(8, { elicitation: {} });
    const at = await converse([{ ask: 'name?' }], { related: false });
    await bench.until(() => said(at).length === 1);
    first.crash();
    const second = await bench.start({ config: QUICK });
    await bench.until(() => bench.runs.length === 2);
    await second.host.opened[0]?.say({ id: 'own', method: 'roots/list' });
    const [asked] = said(at);
    await bench.post('k', { jsonrpc: '2.0', id: (asked as { id?: unknown }).id, result: { text: 'Ada' } });
    expect(textOf((await bench.ended(at)).messages[1])).toBe('Ada');
  });
});
