export { GatewayConfigSchema } from './config.ts';
export type { GatewayConfig } from './config.ts';
export type { GatewayDeps } from './context.ts';
export { startGatewayCore } from './core.ts';
export type { GatewayCore } from './core.ts';
export type { GatewayRequest, ResponseSink } from './exchange.ts';
export { ListenError } from './http/listen.ts';
export { startGateway } from './start-gateway.ts';
export type { Gateway, StartGatewayDeps } from './start-gateway.ts';
