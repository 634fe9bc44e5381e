/** The process: real arguments, environment, streams, signals and exit code around `run`. */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { errorStack } from '@throughline/log';
import { DEMO_MODULE } from './demo-module.ts';
import { run } from './run.ts';

interface Manifest {
  readonly version: string;
}

// Found from src/ and from dist/ alike.
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as Manifest;

/** A reader that has gone (`throughline serve | head -1`) is no reason to die. */
function ignoreClosedPipe(stream: NodeJS.WriteStream): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

ignoreClosedPipe(process.stdout);
ignoreClosedPipe(process.stderr);

const out = (line: string): void => {
  process.stdout.write(line);
};
const err = (line: string): void => {
  process.stderr.write(line);
};

/** A pipe whose reader is slow is waited for; one whose reader has gone says `close`. */
const flushed = async (): Promise<void> => {
  if (!process.stdout.writableNeedDrain) return;
  await new Promise<void>((resolve) => {
    process.stdout
      .once('drain', resolve)
      .once('close', resolve)
      .once('error', () => resolve());
  });
};

const onSignals = (onSignal: (signal: NodeJS.Signals) => void): (() => void) => {
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  return () => {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  };
};

run({
  argv: process.argv.slice(2),
  environment: process.env,
  cwd: process.cwd(),
  version,
  demoModule: DEMO_MODULE,
  out,
  err,
  readStdin: () => text(process.stdin),
  async operate(operation, settings) {
    const { operate } = await import('./operate/operate.ts');
    return await operate(operation, settings, {
      out,
      err,
      onSignals,
      flushed,
      isInteractive: process.stdin.isTTY && process.stderr.isTTY,
    });
  },
  async runRole(role, settings) {
    // Loaded when needed: help and configuration commands answer without the weight of the servers.
    const [{ runRole }, { realParts }] = await Promise.all([import('./run-role.ts'), import('./real-parts.ts')]);
    return await runRole(role, settings, realParts, {
      out,
      err,
      onSignals,
      exit: (code) => process.exit(code),
    });
  },
}).then(
  // Not by itself: a server's module may have left timers or sockets behind.
  (code) => process.exit(code),
  (error: unknown) => {
    err(`throughline: unexpected failure: ${errorStack(error)}\n`);
    process.exit(1);
  },
);
