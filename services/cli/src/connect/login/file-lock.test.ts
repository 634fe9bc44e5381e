import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { tryLock } from './file-lock.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'throughline-lock-'));
  file = path.join(folder, 'deeper', 'lock');
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe('a lock between processes', () => {
  it('[CONNECT-LOGIN-SHARED] is one process’s at a time, and free when it is released', async () => {
    const first = await tryLock(file);
    expect(first).not.toBeNull();
    expect(await tryLock(file)).toBeNull();
    await first?.release();
    await first?.release();
    const second = await tryLock(file);
    expect(second).not.toBeNull();
    // Whoever has lost it takes nobody else's away.
    await first?.release();
    expect(await tryLock(file)).toBeNull();
    await second?.release();
    expect(readdirSync(path.dirname(file))).toEqual([]);
  });

  it.each(['4194305 1 0', '', 'what', '0 1 0', '-1 1 0'])(
    '[CONNECT-LOGIN-SHARED] of a process that has died (%j) is taken over',
    async (holder) => {
      await (await tryLock(file))?.release();
      writeFileSync(file, holder);
      const lock = await tryLock(file);
      expect(lock).not.toBeNull();
      expect(readFileSync(file, 'utf8')).toMatch(new RegExp(`^${process.pid} `));
      await lock?.release();
      expect(readdirSync(path.dirname(file))).toEqual([]);
    },
  );

  it('[CONNECT-LOGIN-SHARED] of the dead is taken over by one of those that come at once', async () => {
    await (await tryLock(file))?.release();
    for (let round = 0; round < 20; round++) {
      writeFileSync(file, '4194305 1 0');
      const locks = await Promise.all(Array.from({ length: 8 }, () => tryLock(file)));
      const held = locks.filter((lock) => lock !== null);
      expect(held).toHaveLength(1);
      await held[0]?.release();
    }
  });

  it('[CONNECT-LOGIN-SHARED] of the dead is free again though somebody died while taking it over', async () => {
    await (await tryLock(file))?.release();
    writeFileSync(file, '4194305 1 0');
    writeFileSync(`${file}.takeover`, '');
    expect(await tryLock(file)).toBeNull();
    vi.useFakeTimers({ now: Date.now() + 11_000, toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    expect(await tryLock(file)).toBeNull();
    expect(await tryLock(file)).not.toBeNull();
  });

  it('[CONNECT-LOGIN-SHARED] where no lock can be, that is told', async () => {
    writeFileSync(path.join(folder, 'deeper'), '');
    await expect(tryLock(file)).rejects.toMatchObject({ code: 'EEXIST' });
  });
});
