import { spawnSync } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { forbidReal } from './src/forbid-real.ts';
import { runSeed } from './src/run-seed.ts';

describe('a simulated run', () => {
  it('[SIM-REPEAT] is the same when its seed is run again', { timeout: 120_000 }, async () => {
    for (const seed of [1, 2, 3, 5, 8, 13, 21, 34]) {
      const first = await runSeed(seed);
      const again = await runSeed(seed);
      expect(again.hash, `seed ${seed}`).toBe(first.hash);
      expect(again.steps).toBe(first.steps);
    }
  });

  it('[SIM-REPEAT] is the same in another process, as a person replays it', { timeout: 120_000 }, async () => {
    for (const seed of [21, 34]) {
      const { stdout } = spawnSync(
        process.execPath,
        ['--conditions=@throughline/source', path.join(import.meta.dirname, 'replay.ts'), String(seed), '--quiet'],
        { encoding: 'utf8' },
      );
      expect(stdout).toContain((await runSeed(seed)).hash);
    }
  });

  it('[SIM-REPEAT] is another one with another seed', async () => {
    expect((await runSeed(1)).hash).not.toBe((await runSeed(2)).hash);
  });

  it('[SIM-REAL] forbids real time and chance, and knows who asked', async () => {
    const forbidden = forbidReal();
    const { randomBytes } = await import('node:crypto');
    const tries = [
      () => setTimeout(() => undefined, 1),
      () => Date.now(),
      () => Math.random(),
      () => performance.now(),
      () => crypto.randomUUID(),
      () => randomBytes(4),
    ];
    const thrown = tries.filter((use) => {
      try {
        use();
        return false;
      } catch {
        return true;
      }
    });
    forbidden.restore();
    expect(thrown.length).toBe(tries.length);
    expect(forbidden.calls.length).toBe(tries.length);
    expect(() => Date.now()).not.toThrow();
  });
});
