import { describeLogConformance } from '../conformance/index.ts';
import { systemClock } from '../system.ts';
import { createMemoryStore, openMemoryLog } from './index.ts';
import type { MemoryLog } from './index.ts';

describeLogConformance('memory', () => {
  const store = createMemoryStore({ clock: systemClock, leaseMs: 300 });
  const handles: MemoryLog[] = [];
  return Promise.resolve({
    clock: systemClock,
    groupMs: 5000,
    isDurable: false,
    modelRuns: 100,
    open() {
      const log = openMemoryLog(store, { clock: systemClock });
      handles.push(log);
      return Promise.resolve(log);
    },
    async dispose() {
      await Promise.all(handles.map((handle) => handle.close()));
    },
    evict(ref, before) {
      store.controls.evictBefore(ref, before);
      return Promise.resolve();
    },
    compact(topic) {
      store.controls.compact(topic);
      return Promise.resolve();
    },
    grow(partitions) {
      store.controls.addPartitions(partitions);
      return Promise.resolve();
    },
    failAppends(log, fault) {
      (log as MemoryLog).failAppends(fault);
      return Promise.resolve();
    },
    crash(log) {
      (log as MemoryLog).crash();
      return Promise.resolve();
    },
  });
});
