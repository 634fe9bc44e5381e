/** An operator's command as a process: logs, signals and clock around `runOperation`. */
import { sleep, systemClock } from '@throughline/log';
import { createPinoLogger } from '@throughline/telemetry/pino';
import type { Settings } from '../settings.ts';
import type { Operation } from './operations.ts';
import { INTERRUPTED, runOperation } from './run-operation.ts';

export interface OperateProcess {
  out(text: string): void;
  err(text: string): void;
  flushed(): Promise<void>;
  onSignals(onSignal: (signal: NodeJS.Signals) => void): () => void;
  readonly isInteractive: boolean;
}

export async function operate(operation: Operation, settings: Settings, self: OperateProcess): Promise<number> {
  const asked = new AbortController();
  const unlisten = self.onSignals(() => {
    asked.abort();
  });
  const logger = createPinoLogger({
    level: settings.logLevel,
    json: settings.jsonLogs,
    write: (line) => {
      self.err(line);
    },
  });
  try {
    const running = runOperation(operation, settings, { ...self, logger, clock: systemClock, signal: asked.signal });
    return await Promise.race([running, interrupted(asked.signal)]);
  } finally {
    unlisten();
  }
}

/** What still waits for a broker some time after Ctrl-C is left behind: the process ends. */
const GRACE_MS = 300;

async function interrupted(signal: AbortSignal): Promise<number> {
  await new Promise((resolve) => {
    signal.addEventListener('abort', resolve, { once: true });
  });
  await sleep(systemClock, GRACE_MS);
  return INTERRUPTED;
}
