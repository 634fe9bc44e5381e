/** The official conformance suite as a process: its exit code and what it wrote. */
import { spawn } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { within } from '@throughline/testkit/processes';

const SUITE = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);
const DEADLINE_MS = 120_000;

export async function runConformance(
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly text: string }> {
  const child = spawn(process.execPath, [SUITE, ...args], {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0', ...environment },
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
  try {
    const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code: await within('the conformance suite', closed, DEADLINE_MS), text };
  } finally {
    child.kill('SIGKILL');
  }
}
