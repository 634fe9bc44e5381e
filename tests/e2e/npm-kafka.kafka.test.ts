/** The two commands of the README for a trial on Kafka, to the letter: the second is what the first prints. */
import { spawn } from 'node:child_process';
import path from 'node:path';
import { findFreePort } from '@throughline/testkit';
import { makeScratchFolder, waitUntil, within } from '@throughline/testkit/processes';
import { expect, inject, it } from 'vitest';
import { connectOfficial } from './official-client.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const isSkipped = (inject('kafka') ?? null) === null;

interface Command extends AsyncDisposable {
  said(): string;
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>;
}

function start(args: readonly string[]): Command {
  const child = spawn('npm', [...args], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (said += data.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const stop = async (): Promise<number | null> => {
    child.kill('SIGTERM');
    return await within(`the end of npm ${args.join(' ')}`, ended, 60_000);
  };
  return {
    said: () => said,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}

it.skipIf(isSkipped)(
  '[E2E-KAFKA-TRIAL] npm run kafka names the command that serves on it, and that command serves',
  { timeout: 240_000 },
  async () => {
    using folder = makeScratchFolder();
    const port = await findFreePort();
    await using kafka = start([
      'run',
      'kafka',
      '--',
      '--port',
      String(port),
      '--data',
      path.join(folder.path, 'kafka'),
    ]);
    await waitUntil('the broker', () => /npm start -- --log \S+/.test(kafka.said()), 120_000);
    const [, line = ''] = /npm (start -- --log \S+)/.exec(kafka.said()) ?? [];
    expect(line).toBe(`start -- --log kafka://127.0.0.1:${port}`);
    await using serve = start([...line.split(' '), '--listen', '127.0.0.1:0', '--admin', 'off']);
    await waitUntil('the ready line', () => /Throughline is ready: \S+/.test(serve.said()), 120_000);
    const url = /Throughline is ready: (\S+)/.exec(serve.said())?.[1] ?? '';
    {
      await using client = await connectOfficial('v2', { url });
      expect(await client.callTool('test_simple_text', {})).toContain('simple text');
    }
    expect(await serve.stop(), serve.said()).toBe(0);
    expect(await kafka.stop(), kafka.said()).toBe(0);
  },
);
