/** Runs a demonstration to its end, as `npm run` does. */
import { spawn } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { within } from '@throughline/testkit/processes';

const RUN = fileURLToPath(new URL('../../infra/run.mjs', import.meta.url));

/** Its exit code and everything that it said. */
export async function runDemo(
  name: string,
  deadlineMs = 140_000,
): Promise<{ readonly code: number | null; readonly text: string }> {
  const child = spawn(process.execPath, [RUN, name], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  try {
    const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
    const code = await within(`the demonstration ${name}`, closed, deadlineMs);
    return { code, text };
  } finally {
    child.kill('SIGKILL');
  }
}
