export { EventStoreError, hasEventStoreCode, ResumeRefused } from './errors.ts';
export type { EventStoreErrorCode } from './errors.ts';
export { openEventStore } from './event-store.ts';
export type { EventStoreOptions, SessionEventStores } from './event-store.ts';
export type { EventStoreLimits } from './limits.ts';
export { nodeHandler } from './node-handler.ts';
export type { NodeTransport } from './node-handler.ts';
export type { HandleRequest } from './reinitialize.ts';
export type { SessionEvents } from './session-events.ts';
