/**
 * A client in another language: a small program of `drivers/` that is told what to do in lines of JSON on its standard
 * input, and says what came of it in lines of JSON on its standard output.
 *
 * `{"id": 1, "do": "connect", "url": "…"}` → `{"id": 1, "ok": {"text": ""}}`;
 * `{"id": 2, "do": "call", "tool": "…", "arguments": {…}}` → `{"id": 2, "progress": 1}`, …, `{"id": 2, "ok": {"text": "…"}}`
 * or `{"id": 2, "error": {"text": "…", "code": …, "data": …}}`.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { within } from '@throughline/testkit/processes';
import { DriverError } from './interop-client.ts';
import type { InteropSession } from './interop-client.ts';

export interface Driver {
  readonly file: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

interface Said {
  readonly id: number;
  readonly ok?: { readonly text: string };
  readonly progress?: number;
  readonly error?: { readonly text: string; readonly code?: number; readonly data?: unknown };
}

interface Waiting {
  readonly onProgress: (step: number) => void;
  resolve(said: NonNullable<Said['ok']>): void;
  reject(error: Error): void;
}

const CONNECT_MS = 60_000;
const STOP_MS = 5000;
const MAX_STDERR = 4000;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export async function connectDriven({ file, args, environment }: Driver, url: string): Promise<InteropSession> {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...environment } });
  running.add(child);
  // Kept when they are answered: some clients report progress after the result.
  const waiting = new Map<number, Waiting>();
  let errors = '';
  let last = 0;
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-MAX_STDERR);
  });
  // A driver that ended takes nothing; its end is told below.
  child.stdin.on('error', () => undefined);
  createInterface({ input: child.stdout }).on('line', (line) => {
    const said = JSON.parse(line) as Said;
    const asked = waiting.get(said.id);
    if (said.progress !== undefined) asked?.onProgress(said.progress);
    if (said.ok !== undefined) asked?.resolve(said.ok);
    if (said.error !== undefined) asked?.reject(new DriverError(said.error.text, said.error.code, said.error.data));
  });
  const exited = new Promise<void>((resolve) => {
    const end = (why: string): void => {
      running.delete(child);
      for (const asked of waiting.values()) asked.reject(new DriverError(`the driver ended (${why}): ${errors}`));
      waiting.clear();
      resolve();
    };
    child.once('error', (error) => {
      end(error.message);
    });
    child.once('exit', (code, signal) => {
      end(String(code ?? signal));
    });
  });
  const ask = (what: object, onProgress: (step: number) => void = () => undefined): Promise<NonNullable<Said['ok']>> =>
    new Promise((resolve, reject) => {
      const id = ++last;
      waiting.set(id, { onProgress, resolve, reject });
      child.stdin.write(`${JSON.stringify({ id, ...what })}\n`);
    });
  const stop = async (): Promise<void> => {
    child.stdin.end();
    await within('the driver to end', exited, STOP_MS).catch(() => child.kill('SIGKILL'));
  };
  try {
    await within('the driver to connect', ask({ do: 'connect', url }), CONNECT_MS);
    return {
      callTool: async (tool, args, onProgress) => (await ask({ do: 'call', tool, arguments: args }, onProgress)).text,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
