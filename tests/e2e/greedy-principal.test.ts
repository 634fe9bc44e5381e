/** What one principal can take from another, measured in pairs: the same calls alone, and beside a greedy client. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { describeAnswer, makeScratchFolder, RawClient, startThroughline, within } from '@throughline/testkit/processes';
import type { ThroughlineProcess } from '@throughline/testkit/processes';
import { expect, it } from 'vitest';
import { HOSTILE_STDIO } from './fixtures/paths.ts';
import { showLogsOnFailure } from './show-logs.ts';

const CALLS = 40;
/** Generous: the machine may be busier in the second run. Without a share the first call of that never ends. */
const MAX_RATIO = 10;
/** Of calls beside a flood, which takes its part of the machine as well. Without a share it is forty times and more. */
const MAX_FLOOD_RATIO = 20;
const FLOOD_CALLS = 15;
const FLOODS = 6;

const median = (values: readonly number[]): number =>
  [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN;

async function timeOf(client: RawClient, url: string, text: string): Promise<number> {
  const startedAt = performance.now();
  const answer = await client.callTool(url, 'quiet', { text });
  await within('the answer to the other principal', answer.closed, 20_000);
  expect(answer.events().at(-1)?.data, describeAnswer(answer)).toContain(text);
  return performance.now() - startedAt;
}

type As = (name: string) => Promise<RawClient>;

/** Whoever says its name is that principal. */
async function serveTwo(folder: string, args: readonly string[]): Promise<{ serve: ThroughlineProcess; as: As }> {
  const tokens = path.join(folder, 'tokens');
  const lines = ['greedy', 'modest'].map((name) => `${name}:${createHash('sha256').update(name).digest('hex')}`);
  writeFileSync(tokens, `${lines.join('\n')}\n`);
  const command = `"${process.execPath}" "${HOSTILE_STDIO}"`;
  const serve = await startThroughline('serve', {
    folder,
    args: ['--stdio', command, '--auth-tokens-file', tokens, ...args],
  });
  showLogsOnFailure(serve);
  const as: As = (name) => RawClient.connect(serve.url, { headers: { Authorization: `Bearer ${name}` } });
  return { serve, as };
}

async function medianOf(client: RawClient, url: string, calls: number): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < calls; count++) times.push(await timeOf(client, url, `call ${count}`));
  return median(times);
}

it('[WRK-PLACES-PRINCIPAL] a principal that fills its share of running calls, and all its queues, slows no other', async () => {
  using folder = makeScratchFolder();
  const limits = { '--max-running': 16, '--max-running-per-principal': 12, '--max-running-per-session': 8 };
  const options = Object.entries({ ...limits, '--max-queued-per-session': 16 }).flatMap(([name, value]) => [
    name,
    `${value}`,
  ]);
  const started = await serveTwo(folder.path, options);
  await using serve = started.serve;
  const { as } = started;

  const modest = await as('modest');
  const run = (): Promise<number> => medianOf(modest, serve.url, CALLS);
  await run();
  const alone = await run();
  const greedy = [await as('greedy'), await as('greedy')];
  const refused: string[] = [];
  for (const client of greedy)
    for (let count = 0; count < 8 + 16 + 1; count++) {
      const answer = await client.callTool(serve.url, 'hang');
      if (count === 8 + 16) {
        await within('the one too many to be refused', answer.closed, 20_000);
        refused.push(answer.events().at(-1)?.data ?? '');
      }
    }
  expect(refused).toEqual([expect.stringContaining('CAPACITY'), expect.stringContaining('CAPACITY')]);
  const beside = await run();
  process.stdout.write(`a call: ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside 48 that hang\n`);
  expect(beside / alone).toBeLessThan(MAX_RATIO);
}, 120_000);

it('[WRK-FAIR] a principal whose servers flood the log, in the partition of the others, slows none beyond a stated bound', async () => {
  using folder = makeScratchFolder();
  const started = await serveTwo(folder.path, ['--partitions', '1']);
  await using serve = started.serve;
  const { as } = started;
  const modest = await as('modest');
  await medianOf(modest, serve.url, CALLS);
  const alone = await medianOf(modest, serve.url, CALLS);
  const greedy = await Promise.all(Array.from({ length: FLOODS }, () => as('greedy')));
  const floods = [];
  for (const client of greedy) {
    const flood = await client.callTool(serve.url, 'flood_messages');
    await flood.until('the flood to begin', ({ data }) => data.includes('notifications/message'), 30_000);
    // One of them is read to the end: this process, which measures, has a part of the machine as well.
    if (floods.push(flood) > 1) flood.cut();
  }
  const seen = floods[0]?.events().length ?? 0;
  const beside = await medianOf(modest, serve.url, FLOOD_CALLS);
  process.stdout.write(`a call: ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside ${FLOODS} floods\n`);
  expect(floods[0]?.events().length, 'events of a flood').toBeGreaterThan(seen);
  floods[0]?.cut();
  expect(beside / alone).toBeLessThan(MAX_FLOOD_RATIO);
}, 120_000);
