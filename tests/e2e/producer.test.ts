/** A process that is no server speaks to the client of a session while gateways and workers are killed. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseSessionId } from '@throughline/protocol';
import { openProducer } from '@throughline/producer';
import { checkStream, RawClient, startCluster, waitUntil } from '@throughline/testkit/processes';
import type { Cluster, HttpAnswer, SseItem } from '@throughline/testkit/processes';
import { afterAll, beforeAll, expect } from 'vitest';
import { SERVER_V2 } from './fixtures/paths.ts';
import { it, makeLog } from './log-under-test.ts';
import { showLogsOnFailure } from './show-logs.ts';

let cluster: Cluster;

beforeAll(async () => {
  cluster = await startCluster({
    log: makeLog,
    args: ['--dead-after', '2500ms', '--config', 'throughline.yaml'],
    workerArgs: ['--heartbeat', '250ms'],
    prepare(folder) {
      const config = `servers:\n  demo: { module: ${JSON.stringify(SERVER_V2)}, onOwnerLoss: restore }\n`;
      writeFileSync(path.join(folder, 'throughline.yaml'), config);
    },
  });
}, 90_000);
afterAll(() => cluster[Symbol.asyncDispose](), 60_000);

const MESSAGES = 60;

it(
  '[PRD-KILL] over the kill of its worker and of its gateway a client hears each message of a producer once and in order, though each was appended twice',
  { timeout: 120_000 },
  async () => {
    showLogsOnFailure(cluster);
    const [first = '', second = ''] = cluster.urls();
    const client = await RawClient.connect(first);
    const partition = parseSessionId(client.sessionId)?.id.partition ?? -1;
    await using resources = new AsyncDisposableStack();
    const log = resources.adopt(await cluster.log.open(), (each) => each.close());
    const producer = resources.adopt(await openProducer({ log, timeoutMs: 40_000 }), (each) => each.close());
    const heard: SseItem[] = [];
    const take = (stream: HttpAnswer): void => {
      heard.push(...stream.items);
    };
    const say = async (n: number): Promise<void> => {
      const message = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: n } };
      await producer.append(client.sessionId, message, { idempotencyKey: `m-${n}` });
      // As a retry would, after an outcome that was not heard.
      await producer.append(client.sessionId, message, { idempotencyKey: `m-${n}` });
    };
    let stream = await client.listen(first);
    await say(1);
    await stream.until('the first message', ({ data }) => data.includes('"data":1}'));
    for (let n = 2; n <= MESSAGES; n++) {
      if (n === 20) await cluster.ownerOf(partition)?.kill();
      if (n === 40) {
        await cluster.gateways[0]?.kill();
        take(stream);
        const last = stream.events().findLast(({ id }) => id !== undefined)?.id ?? '';
        stream = await client.resume(second, last);
      }
      await say(n);
    }
    await waitUntil(
      'the last message',
      () => stream.events().some(({ data }) => data.includes(`"data":${MESSAGES}}`)),
      60_000,
    );
    take(stream);
    stream.cut();
    const messages = checkStream(client.sessionId, heard).map(({ data }) => JSON.parse(data) as Said);
    const numbers = messages.flatMap(({ method, params }) => (method === 'notifications/message' ? [params.data] : []));
    expect(numbers).toEqual(Array.from({ length: MESSAGES }, (_, n) => n + 1));
  },
);

interface Said {
  readonly method?: string;
  readonly params: { readonly data: number };
}
