/**
 * Two gateways and two workers on one log file. A client is in the middle of a call when the gateway that streams to it
 * is killed with SIGKILL, then the worker that runs a call. Shows what the client got, beside what somebody sees who was
 * never interrupted. Exit code 0: nothing was lost, repeated or left hanging.
 */
import { parseEventId, parseSessionId } from '@throughline/protocol';
import { checkStream, RawClient, startCluster, within } from '@throughline/testkit/processes';
import type { HttpAnswer, SseItem, StreamMessage } from '@throughline/testkit/processes';
import { say, tellStory } from '../story/tell-story.ts';

const STEPS = 10;
const INTERVAL_MS = 200;
const KILL_AT = 4;

async function step(answer: HttpAnswer, number: number): Promise<void> {
  await answer.until(`step ${number}`, ({ data }) => data.includes(`"progress":${number},`));
}

/** The last JSON-RPC message of a stream that has ended. */
function outcome(items: readonly SseItem[]): {
  readonly result?: unknown;
  readonly error?: { data: { code: string } };
} {
  return JSON.parse(items.findLast(({ data }) => data !== '')?.data ?? '{}') as object;
}

/** Ids in two columns, shortened to what tells them apart: offset, number in the stream, chain. */
function compare(got: readonly StreamMessage[], seen: readonly StreamMessage[], borders: readonly number[]): void {
  const short = (message: StreamMessage | undefined): string => {
    const cursor = message === undefined ? null : parseEventId(message.id);
    return cursor === null ? '-' : `offset ${cursor.offset}  seq ${cursor.seq}  …${message?.id.slice(-11) ?? ''}`;
  };
  say(`    ${'the client'.padEnd(44)}an uninterrupted observer`);
  for (let row = 0; row < Math.max(got.length, seen.length); row++) {
    if (borders.includes(row)) say(`    ${'·'.repeat(20)} kill -9, then Last-Event-ID ${'·'.repeat(20)}`);
    const isEqual = got[row]?.id === seen[row]?.id && got[row]?.data === seen[row]?.data;
    say(`    ${short(got[row]).padEnd(42)}${isEqual ? '= ' : '≠ '}${short(seen[row])}`);
  }
}

async function killGateway(): Promise<boolean> {
  const [first, second] = cluster.gateways;
  if (first === undefined || second === undefined) return false;
  say(`\n1. A call of ${STEPS} steps, streamed by gateway A (pid ${first.pid})`);
  const call = await client.callTool(first.url, 'countdown', { from: STEPS, intervalMs: INTERVAL_MS });
  await step(call, KILL_AT);
  await first.kill();
  const killedAt = performance.now();
  await within('the connection to break', call.closed);
  const before = [...call.items];
  const cursor = call.lastId() ?? '';
  say(`   kill -9 ${first.pid}; the client has ${call.events().length} of ${STEPS + 1} messages`);
  const resumed = await client.resume(second.url, cursor);
  say(`   it resumes on gateway B (pid ${second.pid}) with Last-Event-ID: ${cursor}`);
  await resumed.until('the next message', ({ data }) => data !== '');
  say(`   next message ${(performance.now() - killedAt).toFixed(0)} ms after the kill`);
  await within('the end of the call', resumed.closed);
  const observer = await client.resume(second.url, before[0]?.id ?? '');
  await within('the end of the observation', observer.closed);

  const got = checkStream(client.sessionId, [...before, ...resumed.items]);
  const seen = checkStream(client.sessionId, observer.items);
  say('');
  compare(got, seen, [call.events().length]);
  return got.length === STEPS + 1 && JSON.stringify(got) === JSON.stringify(seen);
}

async function killWorker(): Promise<boolean> {
  const gateway = cluster.gateways[1];
  const worker = cluster.ownerOf(parseSessionId(client.sessionId)?.id.partition ?? -1);
  if (gateway === undefined || worker === null) return false;
  say(`\n2. The same session: another call, run by the worker with pid ${worker.pid}`);
  const call = await client.callTool(gateway.url, 'countdown', { from: 1000, intervalMs: INTERVAL_MS });
  await step(call, KILL_AT);
  await worker.kill();
  const killedAt = performance.now();
  say(`   kill -9 ${worker.pid} after ${KILL_AT} steps; the stream of the call stays open`);
  const closing = await within('the call to be settled', call.closed, 30_000);
  const { error } = outcome(call.items);
  say(`   the other worker took over and settled it after ${(performance.now() - killedAt).toFixed(0)} ms:`);
  say(`   ${JSON.stringify(error)}`);
  checkStream(client.sessionId, call.items);

  const again = await client.callTool(gateway.url, 'countdown', { from: 2, intervalMs: INTERVAL_MS });
  await within('a call in the restored session', again.closed);
  const { result } = outcome(again.items);
  say(`   the session goes on there: ${JSON.stringify(result)}`);
  return closing === 'end' && error?.data.code === 'OWNER_LOST' && result !== undefined;
}

say('Starting two gateways and two workers on one log file …');
await using cluster = await startCluster();
for (const [index, { pid, ready }] of cluster.gateways.entries()) say(`  ${'AB'[index] ?? ''}: pid ${pid}: ${ready}`);
for (const { pid, ready } of cluster.workers) say(`     pid ${pid}: ${ready}`);
const client = await RawClient.connect(cluster.gateways[0]?.url ?? '');

await tellStory(
  {
    kept: 'Nothing was lost, nothing was repeated, nothing was left hanging.',
    broken: 'The client did not see what an uninterrupted observer sees.',
  },
  async (claim) => {
    claim('the client has what an uninterrupted observer has, under the same ids', await killGateway());
    claim('the call of the dead worker was settled, and its session goes on', await killWorker());
  },
);
