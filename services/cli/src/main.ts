/** The process: real arguments, environment, streams, signals and exit code around `run`. */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { errorStack, errorText } from '@throughline/log';
import { DEMO_MODULE } from './demo-module.ts';
import { run } from './run.ts';

interface Manifest {
  readonly version: string;
}

// Found from src/ and from dist/ alike.
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as Manifest;

/** Why stdout could not be written. A reader that has gone (`throughline serve | head -1`) is no failure. */
let lostOutput: string | null = null;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') lostOutput = errorText(error);
});
// Log lines that cannot be written, on a disk that is full for instance, are lost; what they tell of goes on.
process.stderr.on('error', () => undefined);

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

/** The exit code of a command whose purpose is what it prints. */
const afterOutput = async (code: number): Promise<number> => {
  await flushed();
  // A failed write is told in a turn of its own.
  await new Promise(setImmediate);
  if (lostOutput === null) return code;
  err(`throughline: the output cannot be written: ${lostOutput}\n`);
  return code === 0 ? 1 : code;
};

/** Its purpose is what it does, not what it prints last: nobody need have read that before it ends. */
let isService = false;

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
  async connect(request) {
    isService = true;
    const { connect } = await import('./connect/connect.ts');
    return await connect(request, {
      input: process.stdin,
      output: process.stdout,
      err,
      onSignals,
      exit: (code) => process.exit(code),
      isInteractive: process.stdin.isTTY && process.stderr.isTTY,
    });
  },
  async runRole(role, settings) {
    isService = true;
    // Loaded when needed: help and configuration commands answer without the weight of the servers.
    const [{ runRole }, { realParts }] = await Promise.all([import('./run-role.ts'), import('./real-parts.ts')]);
    return await runRole(role, settings, realParts, {
      out,
      err,
      onSignals,
      onHangups: (onHangup) => {
        process.on('SIGHUP', onHangup);
        return () => {
          process.off('SIGHUP', onHangup);
        };
      },
      isInteractive: [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY),
      exit: (code) => process.exit(code),
    });
  },
}).then(
  // Not by itself: a server's module may have left timers or sockets behind.
  async (code) => process.exit(isService ? code : await afterOutput(code)),
  (error: unknown) => {
    err(`throughline: unexpected failure: ${errorStack(error)}\n`);
    process.exit(1);
  },
);
