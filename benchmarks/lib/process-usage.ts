/** CPU time and memory of processes, from /proc (Linux). */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { collectGarbage } from '@throughline/testkit/processes';

/** Clock ticks a second: 100 on every Linux that Node runs on. */
const TICKS = 100;
const PAGE_BYTES = 4096;

/** Milliseconds of CPU, user and system, over all threads and all time. */
export function cpuMs(...pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + ofOne(pid), 0);
}

/** The same for this process, in microseconds precision. */
export function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function rssBytes(pid: number): number {
  const pages = readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1];
  return Number(pages) * PAGE_BYTES;
}

/** Resident memory of a process started with `COLLECTING`, when what can be freed is: garbage varies from run to run. */
export async function heldBytes(pid: number): Promise<number> {
  let least = Infinity;
  for (let round = 0; round < 3; round += 1) {
    collectGarbage(pid);
    await pause(SETTLE_MS);
    least = Math.min(least, rssBytes(pid));
  }
  return least;
}

const SETTLE_MS = 2000;

function ofOne(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name of the program may contain spaces and brackets.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
}
