import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeLogConformance } from '../conformance/index.ts';
import type { Log } from '../port.ts';
import { systemClock } from '../system.ts';
import { openSqliteLogWithControls } from './index.ts';
import type { SqliteControls } from './index.ts';

describeLogConformance('sqlite', () => {
  const directory = mkdtempSync(join(tmpdir(), 'log-'));
  const handles = new Map<Log, SqliteControls>();
  const open = async (): Promise<Log> => {
    const { log, controls } = await openSqliteLogWithControls({ file: join(directory, 'log.db'), leaseMs: 600 });
    handles.set(log, controls);
    return log;
  };
  /** A handle that the test has not closed; one more if it closed all. */
  const anyControls = async (): Promise<SqliteControls> => {
    for (const [log, each] of handles)
      if (
        await log.bounds({ topic: 'meta', partition: 0 }).then(
          () => true,
          () => false,
        )
      )
        return each;
    return handles.get(await open())!;
  };
  return Promise.resolve({
    clock: systemClock,
    groupMs: 8000,
    isDurable: true,
    open,
    async dispose() {
      await Promise.all([...handles.keys()].map((log) => log.close()));
      rmSync(directory, { recursive: true });
    },
    async evict(ref, before) {
      await (await anyControls()).evictBefore(ref, before);
      await Promise.allSettled([...handles.keys()].map((log) => log.bounds(ref)));
    },
    async compact() {
      await (await anyControls()).sweep();
    },
    async failAppends(log, fault) {
      await handles.get(log)!.inject(fault === 'refused' ? 'disk-full' : fault);
    },
    crash: (log) => handles.get(log)!.crash(),
  });
});
