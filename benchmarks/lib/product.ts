/** The product with the bench server, on a log of its own. */
import { fileURLToPath } from 'node:url';
import { systemClock } from '@throughline/log';
import { applyTopics } from '@throughline/log/kafka';
import { makeScratchFolder, startThroughline } from '@throughline/testkit/processes';
import type { ThroughlineProcess } from '@throughline/testkit/processes';

const MODULE = fileURLToPath(new URL('../peers/bench-server.ts', import.meta.url));
const QUIET = ['--log-level', 'warn', '--on-owner-loss', 'restore'];
/** Of a bench: nothing but the server's own speed may be in the way. */
const ROOMY = ['--max-sessions', '20000', '--max-running', '20000', '--drain', '1s'];

export interface Product extends AsyncDisposable {
  readonly gateways: readonly ThroughlineProcess[];
  readonly workers: readonly ThroughlineProcess[];
  readonly url: string;
  pids(): number[];
}

export interface ProductOptions {
  /** `serve`: one process. */
  readonly shape: 'serve' | { readonly gateways: number; readonly workers: number };
  /** Where its topics are; absent: a file. */
  readonly kafka?: { readonly brokers: readonly string[]; readonly prefix: string };
  readonly gatewayArgs?: readonly string[];
  /** For Node, in every process. */
  readonly nodeOptions?: string;
}

/** Every started gateway logs its address at `info`. */
export async function startProduct({ shape, kafka, gatewayArgs = [], nodeOptions }: ProductOptions): Promise<Product> {
  const folder = makeScratchFolder();
  const all: ThroughlineProcess[] = [];
  let log = ['--log', `sqlite:${folder.path}/log.db`];
  if (kafka !== undefined) {
    const client = { brokers: kafka.brokers, clientId: 'bench', clock: systemClock };
    await applyTopics(client, { prefix: kafka.prefix, partitions: 4, replication: 1 });
    log = ['--log', `kafka://${kafka.brokers.join(',')}`, '--prefix', kafka.prefix];
  }
  const env = {
    THROUGHLINE_SECRETS: 'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA',
    ...(nodeOptions === undefined ? {} : { NODE_OPTIONS: nodeOptions }),
  };
  const host = ['--module', MODULE, ...QUIET.slice(2), ...ROOMY];
  const start = async (role: 'serve' | 'gateway' | 'worker'): Promise<ThroughlineProcess> => {
    const args = [
      ...log,
      ...(role === 'gateway' ? ['--drain', '1s'] : host),
      ...(role === 'worker' ? [] : ['--max-connections', '20000', ...gatewayArgs]),
    ];
    const started = await startThroughline(role, { args, folder: folder.path, env });
    all.push(started);
    return started;
  };
  const end = async (): Promise<void> => {
    await Promise.all(all.map((part) => part[Symbol.asyncDispose]()));
    folder[Symbol.dispose]();
  };
  try {
    const counts = shape === 'serve' ? { gateways: 0, workers: 0 } : shape;
    if (shape === 'serve') await start('serve');
    for (let n = 0; n < counts.workers; n += 1) await start('worker');
    for (let n = 0; n < counts.gateways; n += 1) await start('gateway');
  } catch (error) {
    await end();
    throw error;
  }
  const gateways = all.filter(({ role }) => role !== 'worker');
  return {
    gateways,
    workers: all.filter(({ role }) => role === 'worker'),
    url: gateways[0]?.url ?? '',
    pids: () => all.map(({ pid }) => pid),
    [Symbol.asyncDispose]: end,
  };
}
