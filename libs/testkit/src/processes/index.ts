export { startCluster } from './cluster.ts';
export type { Cluster, ClusterOptions } from './cluster.ts';
export { COLLECTING, collectGarbage } from './garbage.ts';
export { describeAnswer, exchange, HttpAnswer } from './http-exchange.ts';
export type { Closing, ExchangeOptions } from './http-exchange.ts';
export { makeFilePlace, makeKafkaPlace } from './log-place.ts';
export type { KafkaPlaceOptions, LogPlace, LogPlaceOptions, MakeLogPlace } from './log-place.ts';
export { RawClient } from './raw-client.ts';
export type { RawClientOptions } from './raw-client.ts';
export { startBalancer } from './round-robin-balancer.ts';
export type { Balancer, BalancerTarget } from './round-robin-balancer.ts';
export { makeScratchFolder } from './scratch-folder.ts';
export type { ScratchFolder } from './scratch-folder.ts';
export { SseParser } from './sse-parser.ts';
export type { SseItem } from './sse-parser.ts';
export { BrokenStream, checkStream } from './stream-check.ts';
export type { StreamFault, StreamMessage } from './stream-check.ts';
export { startThroughline, throughlineCommand } from './throughline-process.ts';
export type {
  Exit,
  GatewayPorts,
  ThroughlineOptions,
  ThroughlineProcess,
  ThroughlineRole,
} from './throughline-process.ts';
export { waitUntil, within } from './wait-until.ts';
