/** The log and its `meta`, for the time of one command. */
import { answerWithin } from '@throughline/log';
import type { Log } from '@throughline/log';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { Meta } from '@throughline/tail';
import { StartError } from '../faults.ts';
import { openLog } from '../open-log.ts';
import type { Settings } from '../settings.ts';
import type { OperatorProcess } from './operator-process.ts';
import { watchTrouble } from './read-trouble.ts';

/** Opens the log, never makes one: a command that looks must not leave something to look at. Errors: `LogError`, {@link StartError}. */
export async function withLog<T>(settings: Settings, self: OperatorProcess, use: (log: Log) => Promise<T>): Promise<T> {
  const { location } = settings.log;
  if (location.kind === 'sqlite' && !existsSync(path.resolve(location.file)))
    throw new StartError(
      `There is no log at ${path.resolve(location.file)}. Name it with --log sqlite:<file> or --log kafka://<host>:<port>.`,
    );
  const log = answerWithin(await openLog(settings.log, { role: 'operator', logger: self.logger }), self.clock);
  try {
    return await use(log);
  } finally {
    await log.close();
  }
}

/** `use` gets a `meta` that knows all that was acknowledged before. Errors: those of `Log.read`. */
export async function withMeta<T>(log: Log, self: OperatorProcess, use: (meta: Meta) => Promise<T>): Promise<T> {
  const trouble = watchTrouble();
  const meta = new Meta({
    log,
    clock: self.clock,
    onError: trouble.onError,
  });
  try {
    const limit = AbortSignal.any([self.signal, trouble.signal, AbortSignal.timeout(META_MS)]);
    await meta.sync(limit).catch((error: unknown) => {
      throw trouble.cause(error);
    });
    return await use(meta);
  } finally {
    await meta.close();
  }
}

const META_MS = 30_000;
