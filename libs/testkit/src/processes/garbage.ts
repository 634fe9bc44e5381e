/** Garbage of another process, collected on demand: what it holds then is what it needs, or leaks. */
import process from 'node:process';

const COLLECTOR = new URL('./collect-on-signal.ts', import.meta.url).href;

/** Options of Node (`NODE_OPTIONS`) of a process that {@link collectGarbage} is for. Another one ends of its signal. */
export const COLLECTING = `--import ${COLLECTOR}`;

/** Asks for it; done when the process has come to its next turn. */
export function collectGarbage(pid: number): void {
  process.kill(pid, 'SIGUSR2');
}
