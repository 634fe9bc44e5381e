/** A role as a process: starts it, says when it is ready, waits for a signal, drains, ends. */
import type { Clock } from '@throughline/log';
import type { Logger } from '@throughline/telemetry';
import { createPinoLogger } from '@throughline/telemetry/pino';
import { createPrometheusMetrics } from '@throughline/telemetry/prometheus';
import { describeFailure } from './describe-failure.ts';
import type { Role } from './option-table.ts';
import type { Settings } from './settings.ts';
import { startRole } from './start-role.ts';
import { suggestCommand } from './suggest-command.ts';
import type { Parts, Running } from './start-role.ts';
import { UnreleasedError } from './unreleased-error.ts';

export interface RoleProcess {
  out(text: string): void;
  err(text: string): void;
  /** Calls `onSignal` for each SIGINT and SIGTERM; returns the way to stop that. */
  onSignals(onSignal: (signal: NodeJS.Signals) => void): () => void;
  /** Calls `onHangup` for each SIGHUP; returns the way to stop that. */
  onHangups(onHangup: () => void): () => void;
  /** A terminal is behind it: it hangs up when that is closed. */
  readonly isInteractive: boolean;
  /** Ends the process at once. */
  exit(code: number): void;
}

/**
 * A terminal's Ctrl-C reaches a process that was started through npm up to three times: from the terminal, which
 * signals the whole group, and from npm and the launcher, which pass it on. So a signal counts as a second one only
 * after this many milliseconds.
 */
const SAME_SIGNAL_MS = 500;

/** What stopping may take beyond the drain before the process ends anyway. */
const STOP_GRACE_MS = 15_000;

const EXIT_BY_SIGNAL = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/** Resolves with the exit code: 0 after a planned stop, 1 if it did not start or did not stop cleanly. */
export async function runRole(role: Role, settings: Settings, parts: Parts, self: RoleProcess): Promise<number> {
  const logger = createPinoLogger({
    level: settings.logLevel,
    json: settings.jsonLogs,
    write: (line) => {
      self.err(line);
    },
  });
  const metrics = createPrometheusMetrics();
  for (const warning of settings.warnings) logger.warn('config.warning', { warning });

  const { clock } = parts;
  const asked = new AbortController();
  let firstSignalAt = 0;
  const stopBy = (signal: NodeJS.Signals): void => {
    if (!asked.signal.aborted) {
      firstSignalAt = clock.monoMs();
      logger.info('stop.asked', { signal });
      asked.abort();
    } else if (clock.monoMs() - firstSignalAt >= SAME_SIGNAL_MS) {
      logger.warn('stop.forced', { signal });
      self.exit(EXIT_BY_SIGNAL[signal === 'SIGINT' || signal === 'SIGHUP' ? signal : 'SIGTERM']);
    }
  };
  let readFilesNow = (): void => undefined;
  const unlisten = self.onSignals(stopBy);
  const unlistenHangups = self.onHangups(() => {
    // Where nobody could see it any more, nor stop it, it would hold its port for ever.
    if (self.isInteractive) {
      stopBy('SIGHUP');
      return;
    }
    logger.info('files.read-now');
    readFilesNow();
  });
  try {
    const telemetry = { logger, metrics, renderMetrics: () => metrics.render() };
    const starting = startRole(role, settings, parts, telemetry, asked.signal);
    const limitMs = stopLimitMs(settings);
    const running = await unlessLate(starting, asked.signal, limitMs, parts.clock);
    if (running === 'late') {
      logger.error('stop.late', { limitMs });
      return 1;
    }
    readFilesNow = () => {
      running.readFilesNow();
    };
    if (!asked.signal.aborted) {
      self.out(`${running.ready}\n`);
      await new Promise<void>((resolve) => {
        asked.signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
    return await stopInTime(running, asked.signal, limitMs, parts.clock, logger);
  } catch (error) {
    // Told to stop while it started: what failed is the start, which nobody wants any more.
    if (asked.signal.aborted) return 0;
    logger.debug('start.failed', { error });
    self.err(`throughline: ${describeFailure(error, (name) => suggestCommand(settings, name))}\n`);
    return 1;
  } finally {
    unlisten();
    unlistenHangups();
  }
}

/** What a process may take, from the first signal on, until it ends in any case. */
function stopLimitMs({ worker, gateway }: Settings): number {
  return worker.drainMs + gateway.drainMs + STOP_GRACE_MS;
}

/** `work`, or `late` if it has not ended `ms` after `asked` fired: whatever it waits for is left behind. */
async function unlessLate<T>(work: Promise<T>, asked: AbortSignal, ms: number, clock: Clock): Promise<T | 'late'> {
  const late = Promise.withResolvers<'late'>();
  let cancel = (): void => undefined;
  const onAsked = (): void => {
    cancel = clock.setTimer(ms, () => {
      late.resolve('late');
    });
  };
  if (asked.aborted) onAsked();
  else asked.addEventListener('abort', onAsked, { once: true });
  work.catch(() => undefined);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    asked.removeEventListener('abort', onAsked);
    cancel();
  }
}

async function stopInTime(
  running: Running,
  asked: AbortSignal,
  limitMs: number,
  clock: Clock,
  logger: Logger,
): Promise<number> {
  const stopped = running.stop({ drain: true }).then(
    () => 'clean' as const,
    (error: unknown) => {
      logger.error('stop.failed', { error: error instanceof UnreleasedError ? error.message : error });
      return 'failed' as const;
    },
  );
  const outcome = await unlessLate(stopped, asked, limitMs, clock);
  if (outcome === 'late') logger.error('stop.late', { limitMs });
  else logger.info('stop.done');
  return outcome === 'clean' ? 0 : 1;
}
