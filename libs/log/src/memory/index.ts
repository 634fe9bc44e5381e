export { createMemoryLog, openMemoryLog } from './memory-log.ts';
export type { MemoryLog } from './memory-log.ts';
export { createMemoryStore } from './store.ts';
export type { AppendFault, MemoryControls, MemoryStore, MemoryStoreOptions } from './store.ts';
