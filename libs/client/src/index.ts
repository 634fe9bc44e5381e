/** A resumable transport for the official MCP clients. Runs in Node, browsers and edge runtimes: fetch and web streams only. */
export { ResumableTransport } from './resumable-transport.ts';
export type { SendOptions, WireMessage } from './resumable-transport.ts';
export type {
  EventNotice,
  HeadersLike,
  LostSession,
  OrphanAnswer,
  ResumableTransportOptions,
  RestoredSession,
  UnprovenNotice,
} from './options.ts';
export type { ResumptionPolicy } from './judge-event.ts';
export type { Fact, RejectionReason } from './verdict.ts';
export { ResumptionRejected, TransportError } from './client-errors.ts';
export type { TransportCode } from './client-errors.ts';
export { MemoryCheckpointStore } from './checkpoint-store.ts';
export type { CheckpointStore } from './checkpoint-store.ts';
