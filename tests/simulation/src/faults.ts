/**
 * The table of faults. Each strikes once when called and undoes itself after a while, or is undone by the supervisor
 * when quiet is to be. A new fault is a new row.
 */
import type { FaultRow } from './fault-scene.ts';
import { HISTORY_FAULTS } from './history-faults.ts';
import { LOG_FAULTS } from './log-faults.ts';
import { NETWORK_FAULTS } from './network-faults.ts';
import { PROCESS_FAULTS } from './process-faults.ts';

export const FAULTS = {
  ...PROCESS_FAULTS,
  ...LOG_FAULTS,
  ...NETWORK_FAULTS,
  ...HISTORY_FAULTS,
} as const satisfies Record<string, FaultRow>;

export type FaultName = keyof typeof FAULTS;

/** The row of a fault that a plan names. Throws on an unknown name. */
export function faultNamed(name: string): FaultRow {
  const row = (FAULTS as Readonly<Record<string, FaultRow>>)[name];
  if (row === undefined) throw new RangeError(`there is no fault ${name}`);
  return row;
}
