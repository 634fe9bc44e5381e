import { LogError, systemClock } from '@throughline/log';
import { describe, expect, it } from 'vitest';
import { choosePartition } from './choose-partition.ts';
import type { GatewayContext } from './context.ts';

function contextWith(live: readonly (readonly number[])[], sync: () => Promise<void> = async () => undefined) {
  let asked = 0;
  let synced = 0;
  const context = {
    clock: systemClock,
    random: { unit: () => 0.6, bytes: (count: number) => new Uint8Array(count) },
    config: { deadAfterMs: 4000, appendTimeoutMs: 1000 },
    served: { has: (partition: number) => partition < 4 },
    meta: {
      livePartitions: () => live[Math.min(asked++, live.length - 1)] ?? [],
      sync: async () => {
        synced++;
        await sync();
      },
    },
  } as unknown as GatewayContext;
  return { context, synced: () => synced };
}

const NEVER = new AbortController().signal;

describe('choosePartition', () => {
  it('[GW-INIT] takes one of the partitions with a living owner, without a word to the log', async () => {
    const { context, synced } = contextWith([[1, 3]]);
    expect(await choosePartition(context, 'e', NEVER)).toBe(3);
    expect(synced()).toBe(0);
  });

  it('[GW-INIT] a worker whose heartbeat was acknowledged but not yet read here is found', async () => {
    const { context, synced } = contextWith([[], [2]]);
    expect(await choosePartition(context, 'e', NEVER)).toBe(2);
    expect(synced()).toBe(1);
  });

  it('[GW-INIT] a log that does not answer and partitions that this gateway does not serve are nobody', async () => {
    const { context } = contextWith([[9]], () => Promise.reject(new LogError('LOG_UNAVAILABLE', 'no answer')));
    expect(await choosePartition(context, 'e', NEVER)).toBeUndefined();
  });
});
