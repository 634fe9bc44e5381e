/** Servers that are wrong on purpose, as processes: a session of another client beside them goes on, in bounded memory. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { describeAnswer, makeScratchFolder, RawClient, startThroughline, within } from '@throughline/testkit/processes';
import type { HttpAnswer } from '@throughline/testkit/processes';
import { expect, it } from 'vitest';
import { HOSTILE_STDIO } from './fixtures/paths.ts';
import { showLogsOnFailure } from './show-logs.ts';

const MIB = 1024 * 1024;
/**
 * Of the process that hosts them all, above what it has when it is idle: a hot cache of 64 MiB, what waits for the log, a
 * line of 16 MiB, and copies of these that are not collected yet. Without bounds it is gigabytes.
 */
const MAX_GROWTH = 768 * MIB;
const FLOOD_MS = 2000;

const rssOf = (pid: number): number => {
  const pages = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(pages) * 1024;
};

async function echo(client: RawClient, url: string, text: string): Promise<number> {
  const startedAt = performance.now();
  const answer = await client.callTool(url, 'quiet', { text });
  await within('the answer to the witness', answer.closed, 30_000);
  expect(answer.events().at(-1)?.data, describeAnswer(answer)).toContain(text);
  return performance.now() - startedAt;
}

async function errorOf(answer: HttpAnswer): Promise<string> {
  await within('the call to end', answer.closed, 60_000);
  return answer.events().at(-1)?.data ?? '';
}

const FLOODS = ['flood_stdout', 'flood_stderr', 'flood_messages', 'half_line', 'half_line_slowly'];

it('[HOST-HOSTILE] a child that floods stdout, stderr or the log, or never ends a line, hangs no call of another session, and takes no more memory than its bounds', async () => {
  using folder = makeScratchFolder();
  const command = `"${process.execPath}" "${HOSTILE_STDIO}"`;
  await using serve = await startThroughline('serve', { folder: folder.path, args: ['--stdio', command] });
  showLogsOnFailure(serve);
  const witness = await RawClient.connect(serve.url);
  await echo(witness, serve.url, 'before');
  const before = rssOf(serve.pid);
  for (const tool of FLOODS) {
    const hostile = await RawClient.connect(serve.url);
    const call = await hostile.callTool(serve.url, tool);
    const until = performance.now() + FLOOD_MS;
    let [most, count, slowest] = [0, 0, 0];
    while (performance.now() < until || count < 3) {
      slowest = Math.max(slowest, await echo(witness, serve.url, `while ${count++}`));
      most = Math.max(most, rssOf(serve.pid));
    }
    process.stdout.write(
      `${tool}: ${count} calls beside it, the slowest ${Math.round(slowest)} ms, ${Math.round((most - before) / MIB)} MiB more\n`,
    );
    expect(most - before, tool).toBeLessThan(MAX_GROWTH);
    call.cut();
    expect((await hostile.end(serve.url)).status).toBeLessThan(500);
  }
  await echo(witness, serve.url, 'after');
  expect(serve.logs().length).toBeLessThan(4 * MIB);
  expect(await serve.stop()).toEqual({ code: 0, signal: null });
}, 180_000);

it('[WRK-TELLS] [HOST-HOSTILE] a child that dies in a call ends its own session, and its client hears nothing of its stderr', async () => {
  using folder = makeScratchFolder();
  const command = `"${process.execPath}" "${HOSTILE_STDIO}"`;
  await using serve = await startThroughline('serve', { folder: folder.path, args: ['--stdio', command] });
  showLogsOnFailure(serve);
  const witness = await RawClient.connect(serve.url);
  const hostile = await RawClient.connect(serve.url);
  const error = await errorOf(await hostile.callTool(serve.url, 'die'));
  expect(error).toContain('SERVER_FAILED');
  expect(error).toContain('exited with code 3');
  expect(error).not.toContain('hunter2');
  expect(serve.logs()).toContain('hunter2');
  await echo(witness, serve.url, 'after');
}, 120_000);

it('[HOST-HOSTILE] clients that begin sessions of a server that dies at once hear so each time, and the others go on', async () => {
  using folder = makeScratchFolder();
  const command = `"${process.execPath}" "${HOSTILE_STDIO}"`;
  await using serve = await startThroughline('serve', {
    folder: folder.path,
    args: ['--config', writeTwoServers(folder.path, command)],
  });
  showLogsOnFailure(serve);
  const [good, bad] = [`${serve.url}/good`, `${serve.url}/bad`];
  const witness = await RawClient.connect(good);
  for (let attempt = 0; attempt < 10; attempt++) {
    await expect(RawClient.connect(bad)).rejects.toThrow();
    await echo(witness, good, `beside ${attempt}`);
  }
}, 120_000);

/** The same server twice: the second dies when a client of this test initializes it, not when it is looked at first. */
function writeTwoServers(folder: string, command: string): string {
  const file = path.join(folder, 'throughline.yaml');
  const servers = [`  good:`, `    stdio: '${command}'`, `  bad:`, `    stdio: '${command}'`, `    env: { DIES: '1' }`];
  writeFileSync(file, ['servers:', ...servers, ''].join('\n'));
  return file;
}
