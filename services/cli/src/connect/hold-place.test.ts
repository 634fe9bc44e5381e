import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { holdPlace } from './hold-place.ts';
import { stateFolder } from './state-folder.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'throughline-place-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe('a place', () => {
  it('[CONNECT-ALONE] is held by one process that lives, and free when that has ended in whatever way', async () => {
    const file = path.join(folder, 'made', 'place.json');
    const other = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' });
    const first = await holdPlace(file);
    expect(readdirSync(path.dirname(file))).toEqual([`place.json.held-by-${process.pid}`]);
    await first?.release();
    writeFileSync(`${file}.held-by-${other.pid ?? 0}`, '');
    expect(await holdPlace(file)).toBeNull();
    // Another place is none of its business.
    expect(await holdPlace(path.join(folder, 'made', 'other.json'))).not.toBeNull();
    other.kill('SIGKILL');
    await once(other, 'exit');
    expect(await holdPlace(file)).not.toBeNull();
    expect(readdirSync(path.dirname(file)).sort()).toEqual([
      `other.json.held-by-${process.pid}`,
      `place.json.held-by-${process.pid}`,
    ]);
  });

  it('[CONNECT-ALONE] is not held by a process of before the machine was started, whoever has its id now', async () => {
    const file = path.join(folder, 'place.json');
    writeFileSync(`${file}.held-by-${process.ppid}`, '');
    expect(await holdPlace(file)).toBeNull();
    utimesSync(`${file}.held-by-${process.ppid}`, 1000, 1000);
    expect(await holdPlace(file)).not.toBeNull();
  });

  it('[CONNECT-PLACE] is kept where the platform keeps such things', () => {
    const home = { environment: {}, platform: 'linux', homeFolder: '/home/me' } as const;
    expect(stateFolder(home)).toBe('/home/me/.local/state/throughline/connect');
    expect(stateFolder({ ...home, environment: { XDG_STATE_HOME: '/state' } })).toBe('/state/throughline/connect');
    expect(stateFolder({ ...home, environment: { XDG_STATE_HOME: 'relative' } })).toBe(stateFolder(home));
    expect(stateFolder({ ...home, platform: 'win32', environment: { LOCALAPPDATA: '/local' } })).toBe(
      '/local/throughline/connect',
    );
  });
});
