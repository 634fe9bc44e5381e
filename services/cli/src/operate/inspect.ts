/** `throughline inspect <event id | session id>`. */
import { deadline } from '@throughline/log';
import { SessionDirectory } from '@throughline/tail';
import type { Settings } from '../settings.ts';
import { describeEvent, renderEvent } from './inspect-event.ts';
import { describeSession, renderSession } from './inspect-session.ts';
import { withLog, withMeta } from './open-operator-log.ts';
import type { OperatorProcess } from './operator-process.ts';
import type { Inspected } from './operations.ts';
import { watchTrouble } from './read-trouble.ts';
import { renderJson } from './table.ts';

/** Reading from the newest checkpoint on takes a moment, all of a day's events a while. */
const READ_MS = 60_000;

/** 0: said what there is to say, whatever that is. */
export async function runInspect(inspected: Inspected, settings: Settings, self: OperatorProcess): Promise<number> {
  return await withLog(settings, self, (log) =>
    withMeta(log, self, async (meta) => {
      const { decoded, text, json, payload } = inspected;
      const { partition } = decoded.id;
      const isThere = partition < log.description.partitions;
      const trouble = watchTrouble();
      const directory = new SessionDirectory({
        log,
        clock: self.clock,
        partitions: isThere ? [partition] : [],
        maxLifeMs: settings.worker.maxLifeMs,
        keepRecords: true,
        onError: trouble.onError,
      });
      const limit = deadline(self.clock, READ_MS, self.signal);
      try {
        await directory.sync(AbortSignal.any([limit.signal, trouble.signal])).catch((error: unknown) => {
          throw trouble.cause(error);
        });
        const source = { log, meta, directory, settings, self, signal: limit.signal };
        if (decoded.kind === 'event') {
          const described = await describeEvent(source, inspected, decoded.id);
          self.out(json ? renderJson(described) : renderEvent(described));
        } else {
          const described = await describeSession(source, text, decoded.id, payload);
          self.out(json ? renderJson(described) : renderSession(described, self.clock.wallMs()));
        }
        return 0;
      } finally {
        limit.dispose();
        await directory.close();
      }
    }),
  );
}
