/** The partition of a new session: one whose owner lives and takes new sessions, by chance. SPEC: GW-INIT. */
import { deadline, LogError } from '@throughline/log';
import type { Epoch, Partition } from '@throughline/protocol';
import type { GatewayContext } from './context.ts';

/**
 * `undefined`: there is none. Before that is said, what was acknowledged until now is looked at: a worker that is ready
 * has said so in the log, which this gateway may not have read yet.
 */
export async function choosePartition(
  context: GatewayContext,
  epoch: Epoch,
  signal: AbortSignal,
): Promise<Partition | undefined> {
  const choose = (): Partition | undefined => {
    const live = context.meta
      .livePartitions(epoch, context.config.deadAfterMs)
      .filter((partition) => context.served.has(partition));
    return live[Math.floor(context.random.unit() * live.length)];
  };
  const known = choose();
  if (known !== undefined) return known;
  const limit = deadline(context.clock, context.config.appendTimeoutMs, signal);
  try {
    await context.meta.sync(limit.signal);
  } catch (error) {
    // Whoever waits is told to try again in any case.
    if (!(error instanceof LogError)) throw error;
  } finally {
    limit.dispose();
  }
  return choose();
}
