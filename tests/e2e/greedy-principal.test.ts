/** What one principal can take from another, measured in pairs: the same calls alone, and beside a greedy client. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { describeAnswer, makeScratchFolder, RawClient, startThroughline, within } from '@throughline/testkit/processes';
import { expect, it } from 'vitest';
import { HOSTILE_STDIO } from './fixtures/paths.ts';
import { showLogsOnFailure } from './show-logs.ts';

const CALLS = 40;
/** Generous: the machine may be busier in the second run. Without a share the first call of that never ends. */
const MAX_RATIO = 10;

const median = (values: readonly number[]): number =>
  [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN;

async function timeOf(client: RawClient, url: string, text: string): Promise<number> {
  const startedAt = performance.now();
  const answer = await client.callTool(url, 'quiet', { text });
  await within('the answer to the other principal', answer.closed, 20_000);
  expect(answer.events().at(-1)?.data, describeAnswer(answer)).toContain(text);
  return performance.now() - startedAt;
}

it('[WRK-PLACES-PRINCIPAL] a principal that fills its share of running calls, and all its queues, slows no other', async () => {
  using folder = makeScratchFolder();
  const tokens = path.join(folder.path, 'tokens');
  const lines = ['greedy', 'modest'].map((name) => `${name}:${createHash('sha256').update(name).digest('hex')}`);
  writeFileSync(tokens, `${lines.join('\n')}\n`);
  const command = `"${process.execPath}" "${HOSTILE_STDIO}"`;
  const limits = { '--max-running': 16, '--max-running-per-principal': 12, '--max-running-per-session': 8 };
  const options = Object.entries({ ...limits, '--max-queued-per-session': 16 }).flatMap(([name, value]) => [
    name,
    `${value}`,
  ]);
  await using serve = await startThroughline('serve', {
    folder: folder.path,
    args: ['--stdio', command, '--auth-tokens-file', tokens, ...options],
  });
  showLogsOnFailure(serve);
  const as = (name: string): Promise<RawClient> =>
    RawClient.connect(serve.url, { headers: { Authorization: `Bearer ${name}` } });

  const modest = await as('modest');
  const run = async (): Promise<number> => {
    const times: number[] = [];
    for (let count = 0; count < CALLS; count++) times.push(await timeOf(modest, serve.url, `call ${count}`));
    return median(times);
  };
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
