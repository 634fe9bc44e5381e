import { describeLogConformance } from '../conformance/index.ts';
import type { Log } from '../port.ts';
import { systemClock } from '../system.ts';
import type { SqliteControls } from './index.ts';
import { makeScratchDirectory } from './scratch-directory.ts';

describeLogConformance('sqlite', () => {
  const scratch = makeScratchDirectory();
  const handles = new Map<Log, SqliteControls>();
  const open = async (): Promise<Log> => {
    const { log, controls } = await scratch.open({ leaseMs: 600 });
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
    dispose: () => scratch.dispose(),
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
