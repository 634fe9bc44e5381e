import type { Log, Random } from '@throughline/log';
import { systemClock, systemRandom } from '@throughline/log';
import { createMemoryLog } from '@throughline/log/memory';
import { encodeText } from '@throughline/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readEmbeddedSecret } from './embedded-secret.ts';
import { StartError } from './faults.ts';

const META = { topic: 'meta', partition: 0 } as const;

/** Bytes that tell who made them. */
function randomOf(byte: number): Random {
  return { bytes: (count) => new Uint8Array(count).fill(byte), unit: () => 0 };
}

let log: Log;
beforeEach(() => {
  log = createMemoryLog({ clock: systemClock, partitions: 1, retentionMs: 60_000 });
});
afterEach(async () => {
  await log.close();
});

describe('readEmbeddedSecret', () => {
  it('[CLI-EMBEDDED-SECRET] a fresh log gets a secret of 32 random bytes, and keeps it', async () => {
    const made = await readEmbeddedSecret(log, randomOf(5));
    expect(made).toEqual(new Uint8Array(32).fill(5));
    expect(await readEmbeddedSecret(log, randomOf(6))).toEqual(made);
    expect((await log.bounds(META)).end).toBe(1);
  });

  it('[CLI-EMBEDDED-SECRET] processes that start at once on one log agree on the first of their secrets', async () => {
    const secrets = await Promise.all([1, 2, 3, 4, 5].map((byte) => readEmbeddedSecret(log, randomOf(byte))));
    for (const secret of secrets) expect(secret).toEqual(secrets[0]);
    expect((await log.bounds(META)).end).toBeGreaterThan(1);
  });

  it('[CLI-EMBEDDED-SECRET] the choice does not change when compaction keeps the last record of each key', async () => {
    const secrets = await Promise.all([1, 2, 3].map((byte) => readEmbeddedSecret(log, randomOf(byte))));
    const { records } = await log.read(META, 0);
    const keys = records.map(({ key }) => Buffer.from(key ?? []).toString());
    expect(records.length).toBeGreaterThan(1);
    expect(new Set(keys).size).toBe(keys.length);
    expect(await readEmbeddedSecret(log, randomOf(9))).toEqual(secrets[0]);
  });

  it('[CLI-EMBEDDED-SECRET] it is found among any number of other records', async () => {
    const other = { key: encodeText('worker/w1'), value: encodeText('x'.repeat(1000)), headers: [] };
    for (let batch = 0; batch < 30; batch++)
      await log.append(
        META,
        Array.from({ length: 100 }, () => other),
      );
    const made = await readEmbeddedSecret(log, systemRandom);
    await log.append(META, [other]);
    expect(await readEmbeddedSecret(log, systemRandom)).toEqual(made);
  });

  it('[CLI-EMBEDDED-SECRET] a damaged secret stops the start and is not replaced', async () => {
    await log.append(META, [{ key: encodeText('secret/x'), value: encodeText('short'), headers: [] }]);
    await expect(readEmbeddedSecret(log, systemRandom)).rejects.toBeInstanceOf(StartError);
    expect((await log.bounds(META)).end).toBe(1);
  });
});
