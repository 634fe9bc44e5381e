/**
 * What a host gets for each thing that it is asked to do. Hosts have shorter deadlines of their own, which say more; these
 * hold where they have none, or break them. SPEC: WAIT-HOST.
 */
import { settleWithin } from '@throughline/log';
import type { Clock } from '@throughline/log';
import { HostError } from '../host/host.ts';

export const HOST_MS = {
  /** Until an instance is there. */
  open: 30_000,
  /** Until a server has answered `initialize`. An upstream is given 30 s by its host, which knows more of why. */
  initialize: 35_000,
  /** Until a message was taken. A server that works hard reads late; one that does not read for so long never will. */
  handOver: 45_000,
  /** Until an instance has ended. */
  close: 10_000,
} as const;

/** Settles as `work` does, or rejects with `HOST_TIMEOUT` after `ms`; `late` gets a value that comes after that. */
export function hostWithin<T>(
  clock: Clock,
  ms: number,
  what: string,
  work: Promise<T>,
  late: (value: T) => void = () => undefined,
): Promise<T> {
  return settleWithin(clock, ms, work, () => {
    work.then(late, () => undefined);
    return new HostError('HOST_TIMEOUT', `the server did not ${what} within ${ms / 1000} s`);
  });
}
