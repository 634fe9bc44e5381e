/** An operator's command as a process: logs, signals and clock around `runOperation`. */
import { systemClock } from '@throughline/log';
import { createPinoLogger } from '@throughline/telemetry/pino';
import type { Settings } from '../settings.ts';
import type { Operation } from './operations.ts';
import { runOperation } from './run-operation.ts';

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
    return await runOperation(operation, settings, { ...self, logger, clock: systemClock, signal: asked.signal });
  } finally {
    unlisten();
  }
}
