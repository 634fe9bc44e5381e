export { findFreePort } from './free-port.ts';
export {
  aliased,
  attached,
  checkpointed,
  claimed,
  closed,
  eventAt,
  placed,
  released,
  sent,
  sessionEnded,
  started,
  streamEnded,
} from './event-script.ts';
export type { MessageOptions } from './event-script.ts';
export { headerOf } from './header-of.ts';
export { createSeededRandom } from './seeded-random.ts';
export type { SeededRandom } from './seeded-random.ts';
export { startFaultLink } from './fault-link.ts';
export type { CutDirection, FaultLink, FaultLinkOptions, TcpTarget } from './fault-link.ts';
export { createVirtualTime } from './virtual-clock.ts';
export type { VirtualTime, VirtualTimeOptions } from './virtual-clock.ts';
export { makeSelfSigned } from './self-signed.ts';
export type { SelfSigned } from './self-signed.ts';
