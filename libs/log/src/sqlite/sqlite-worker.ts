/**
 * Entry of the worker thread that owns the database. It never yields to an event loop: it sleeps on a shared word that
 * the other thread raises with each message, which wakes it sooner than a message event would and makes 1 ms polls
 * 1 ms long. Imports nothing but this package and Node, so that it starts from sources and from a bundle alike.
 */
import { workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { LogError } from '../errors.ts';
import { openDatabase } from './database.ts';
import type { WorkerSettings } from './messages.ts';
import { createWorkerCore } from './worker-core.ts';

const { settings, port } = workerData as { settings: WorkerSettings; port: MessagePort };

try {
  const core = createWorkerCore(openDatabase(settings), settings, port);
  core.run();
} catch (error) {
  const fault =
    error instanceof LogError
      ? { code: error.code, message: error.message, details: error.details }
      : { code: 'LOG_UNAVAILABLE' as const, message: String(error), details: {} };
  port.postMessage({ acks: [], events: [{ kind: 'failed', ids: [0], fault }] });
}
port.close();
