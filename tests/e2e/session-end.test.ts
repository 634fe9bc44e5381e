import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import {
  checkStream,
  describeAnswer,
  makeScratchFolder,
  RawClient,
  startCluster,
  startThroughline,
  waitUntil,
  within,
} from '@throughline/testkit/processes';
import type { HttpAnswer, ThroughlineProcess } from '@throughline/testkit/processes';
import { expect } from 'vitest';
import { COUNTING_SERVER } from './fixtures/paths.ts';
import { it, makeLog } from './log-under-test.ts';
import { showLogsOnFailure } from './show-logs.ts';

async function statusOf(answer: Promise<HttpAnswer>): Promise<number> {
  const { status, cut } = await answer.then((head) => ({ status: head.status, cut: () => head.cut() }));
  cut();
  return status;
}

async function lastMessage(
  answer: HttpAnswer,
): Promise<{ readonly error?: { readonly data: { readonly reason?: string } }; readonly result?: object }> {
  await within('the stream to close', answer.closed);
  const { data } = answer.events().at(-1) ?? { data: '{}' };
  return JSON.parse(data) as object;
}

it('[E2E-DELETE] a session that its client ends is gone on every gateway, and what was pending in it is told so', async () => {
  await using cluster = await startCluster({ log: makeLog, workers: 1, workerArgs: ['--module', COUNTING_SERVER] });
  showLogsOnFailure(cluster);
  const [first = '', second = ''] = cluster.urls();
  const client = await RawClient.connect(first);
  const bystander = await RawClient.connect(second);
  const listening = await client.listen(second);
  const { id: heard = '' } = await listening.until('an id', ({ id }) => id !== undefined);
  const call = await client.callTool(second, 'countdown', { from: 2000, intervalMs: 10 });
  const { id: cursor = '' } = await call.until('a step', ({ data }) => data.includes('"progress":2,'));

  expect((await client.end(first)).status).toBe(204);
  expect((await lastMessage(call)).error?.data, describeAnswer(call)).toMatchObject({ reason: 'session-ended' });
  await within('the standalone stream to close', listening.closed);
  for (const url of [first, second]) {
    await waitUntil('the 404', async () => (await statusOf(client.request(url, 'ping'))) === 404, 5000);
    expect(await statusOf(client.listen(url))).toBe(404);
    expect(await statusOf(client.resume(url, heard))).toBe(404);
    expect(await statusOf(client.end(url))).toBe(404);
    const resumed = await client.resume(url, cursor);
    expect(resumed.status).toBe(200);
    expect((await lastMessage(resumed)).error?.data).toMatchObject({
      type: 'ResumptionRejected',
      reason: 'session-ended',
    });
  }
  const pinged = await bystander.request(first, 'ping');
  expect((await lastMessage(pinged)).result).toEqual({});
}, 120_000);

it('[E2E-RESTART] after kill -9 and a restart on the same log restored sessions go on where they were, and others end with a reason', async () => {
  using folder = makeScratchFolder();
  const file = path.join(folder.path, 'runs.txt');
  writeFileSync(file, '');
  writeFileSync(
    path.join(folder.path, 'throughline.yaml'),
    `servers:
  restored: { module: ${JSON.stringify(COUNTING_SERVER)}, onOwnerLoss: restore }
  ended: { module: ${JSON.stringify(COUNTING_SERVER)}, onOwnerLoss: terminate }
`,
  );
  const log = await makeLog(folder.path, {});
  const args = [...log.args('serve'), '--dead-after', '2s'];
  const start = (): Promise<ThroughlineProcess> => startThroughline('serve', { folder: folder.path, args });
  await using former = await start();
  const restored = await RawClient.connect(`${former.url}/restored`);
  const ended = await RawClient.connect(`${former.url}/ended`);
  const listening = await restored.listen(`${former.url}/restored`);
  const { id: heard = '' } = await listening.until('an id', ({ id }) => id !== undefined);
  // Long enough to be in mid-call when the kill comes, however busy the machine is.
  const idempotent = await restored.callTool(`${former.url}/restored`, 'count_idempotent', { file, id: 'a', ms: 3000 });
  const effect = await restored.callTool(`${former.url}/restored`, 'count_effect', { file, id: 'b', ms: 60_000 });
  const lost = await ended.callTool(`${former.url}/ended`, 'countdown', { from: 5000, intervalMs: 10 });
  await lost.until('a step', ({ data }) => data.includes('"progress":3,'));
  await waitUntil('both runs', () => readFileSync(file, 'utf8').split('start ').length === 3);
  await former.kill();
  const killedAt = performance.now();

  await using serve = await start();
  showLogsOnFailure(serve);
  process.stdout.write(`session-end: ready ${(performance.now() - killedAt).toFixed(0)} ms after kill -9\n`);
  const url = `${serve.url}/restored`;
  const again = await restored.resume(url, idempotent.lastId() ?? '');
  expect((await lastMessage(again)).result, describeAnswer(again)).toBeDefined();
  const failed = await restored.resume(url, effect.lastId() ?? '');
  expect((await lastMessage(failed)).error?.data, describeAnswer(failed)).toMatchObject({
    code: 'OWNER_LOST',
    mayHaveRun: true,
  });
  for (const [client, before, after] of [
    [restored, idempotent, again],
    [restored, effect, failed],
  ] as const)
    expect(checkStream(client.sessionId, [...before.items, ...after.items])).toHaveLength(1);
  expect(readFileSync(file, 'utf8')).toBe('start a\nstart b\nstart a\nend a\n');

  const listensOn = await restored.resume(url, heard);
  const notified = await restored.callTool(url, 'notify_later', { text: 'still here', ms: 1 });
  expect((await lastMessage(notified)).result).toBeDefined();
  await listensOn.until('a message on the standalone stream', ({ data }) => data.includes('still here'));
  expect(checkStream(restored.sessionId, [...listening.items, ...listensOn.items])).toHaveLength(1);
  listensOn.cut();

  // Explicitly, whether its end is met in the log or known before.
  const terminated = await ended.resume(`${serve.url}/ended`, lost.lastId() ?? '');
  const { error } = await lastMessage(terminated);
  expect(['owner-lost', 'session-ended'], describeAnswer(terminated)).toContain(error?.data.reason);
  await waitUntil('the 404', async () => (await statusOf(ended.request(`${serve.url}/ended`, 'ping'))) === 404, 5000);
}, 120_000);
