export { ServerNameSchema, ServerSchema, WorkerConfigSchema } from './config.ts';
export type { ServerConfig, WorkerConfig } from './config.ts';
export { startWorker } from './start-worker.ts';
export type { StartWorkerDeps, Worker } from './start-worker.ts';
