import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { FileCheckpointStore } from '@throughline/client/node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sweepState } from './sweep-state.ts';

const NOW_MS = Date.parse('2026-06-01T00:00:00Z');
const DAY_MS = 86_400_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'throughline-sweep-'));
  mkdirSync(path.join(folder, 'logins'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

function put(name: string, days: number): void {
  const file = path.join(folder, name);
  writeFileSync(file, '');
  const atS = (NOW_MS - days * DAY_MS) / 1000;
  utimesSync(file, atS, atS);
}

/** The name of a place as the store gives it. */
function placeOf(key: string): string {
  return path.basename(new FileCheckpointStore(folder).fileOf(key));
}

describe('the sweep of the state folder', () => {
  it('[CONNECT-SWEEP] takes away places and logins that nobody has used for long, and leaves the others', async () => {
    put(placeOf('old'), 30.1);
    put(placeOf('young'), 29.9);
    put(`logins/${placeOf('old')}`, 180.1);
    put(`logins/${placeOf('young')}`, 179.9);
    await sweepState(folder, NOW_MS);
    expect(readdirSync(folder).sort()).toEqual([placeOf('young'), 'logins'].sort());
    expect(readdirSync(path.join(folder, 'logins'))).toEqual([placeOf('young')]);
  });

  it('[CONNECT-SWEEP] leaves what a process that lives holds, and takes the signs of those that do not', async () => {
    const alive = `${placeOf('alive')}.held-by-${process.pid}`;
    put(placeOf('alive'), 100);
    writeFileSync(path.join(folder, alive), '');
    put(placeOf('dead'), 100);
    // No process has this id.
    put(`${placeOf('dead')}.held-by-4194305`, 0);
    put(`${placeOf('waits')}.held-by-4194305`, 0);
    await sweepState(folder, NOW_MS);
    expect(readdirSync(folder).sort()).toEqual([placeOf('alive'), alive, 'logins'].sort());
  });

  it('[CONNECT-SWEEP] takes what killed processes have left, once nobody can be writing it any more', async () => {
    put(`${placeOf('a')}.123-4.tmp`, 1.1);
    put(`${placeOf('b')}.123-4.tmp`, 0.9);
    put(`logins/${placeOf('a')}.lock`, 1.1);
    put(`logins/${placeOf('a')}.lock.123-4.tmp`, 1.1);
    put(`logins/${placeOf('b')}.lock`, 0.9);
    await sweepState(folder, NOW_MS);
    expect(readdirSync(folder).sort()).toEqual([`${placeOf('b')}.123-4.tmp`, 'logins'].sort());
    expect(readdirSync(path.join(folder, 'logins'))).toEqual([`${placeOf('b')}.lock`]);
  });

  it('[CONNECT-SWEEP] leaves files that are not its own, however old, and takes a folder that is none', async () => {
    const others = ['notes.json', 'x', `${placeOf('a')}.bak`, placeOf('a').slice(1), `copy-of-${placeOf('a')}`];
    for (const name of others) put(name, 1000);
    await sweepState(folder, NOW_MS);
    expect(readdirSync(folder).sort()).toEqual([...others, 'logins'].sort());
    await sweepState(path.join(folder, 'nothing'), NOW_MS);
    await sweepState(path.join(folder, 'x'), NOW_MS);
  });
});
