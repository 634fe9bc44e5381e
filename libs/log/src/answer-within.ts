/**
 * A log whose every operation ends in time, whatever its driver does. A driver has deadlines of its own, which are
 * shorter and say more; this one holds where it has none: a thread that stands still, a socket that nobody closes, a
 * defect. So no caller of the port can hang. SPEC: WAIT-LOG.
 */
import { abortable, deadline } from './clock.ts';
import type { Clock } from './clock.ts';
import { LogError } from './errors.ts';
import type { Log, Membership } from './port.ts';
import { ackWithin, settleWithin } from './settle-within.ts';

/** Longer than the deadlines of every driver, and shorter than what clients commonly wait for an answer (60 s). */
export const LOG_ANSWER_MS = 30_000;
/** So that whoever waits for an ack by a deadline of its own gives up first. */
const AFTER_APPEND_MS = 10_000;

/** So that a log that passes through several hands waits once. */
const inTime = new WeakSet<Log>();

/**
 * `log` with a deadline for every operation: an append rejects with `APPEND_UNKNOWN` after 30 s, anything else with
 * `LOG_UNAVAILABLE`, a read 30 s after its own wait, and with `ABORTED` as soon as its signal fires. What comes later is
 * dropped; a membership that comes later is left.
 * @param appendTimeoutMs how long acks are waited for elsewhere: an append has 10 s more than that, if it is more than 30 s.
 */
export function answerWithin(log: Log, clock: Clock, appendTimeoutMs = 0): Log {
  if (inTime.has(log)) return log;
  const appendMs = Math.max(LOG_ANSWER_MS, appendTimeoutMs + AFTER_APPEND_MS);
  const within = <T>(what: string, work: Promise<T>): Promise<T> =>
    settleWithin(clock, LOG_ANSWER_MS, work, () => notAnswered(what));
  const bounded: Log = {
    // Partitions may be added while it lives.
    get description() {
      return log.description;
    },
    describe: () => within('describe', log.describe()),
    onGrown: (listener) => log.onGrown(listener),
    append: (to, records) => ackWithin(clock, appendMs, log.append(to, records)),
    async read(from, position, options = {}) {
      const limit = deadline(clock, (options.waitMs ?? 0) + LOG_ANSWER_MS, options.signal);
      try {
        return await abortable(log.read(from, position, { ...options, signal: limit.signal }), limit.signal);
      } catch (error) {
        if (!limit.expired()) throw error;
        throw notAnswered('read');
      } finally {
        limit.dispose();
      }
    },
    bounds: (of) => within('bounds', log.bounds(of)),
    committed: (group) => within('committed', log.committed(group)),
    async join(options) {
      const joining = log.join(options);
      try {
        return boundMembership(await within('join', joining), within);
      } catch (error) {
        // Nobody would leave the group for it.
        joining.then((membership) => membership.leave()).catch(() => undefined);
        throw error;
      }
    },
    close: () => within('close', log.close()),
  };
  inTime.add(bounded);
  return bounded;
}

function boundMembership(
  membership: Membership,
  within: <T>(what: string, work: Promise<T>) => Promise<T>,
): Membership {
  return {
    member: membership.member,
    assigned: () => membership.assigned(),
    commit: (partition, offset) => within('commit', membership.commit(partition, offset)),
    leave: () => within('leave', membership.leave()),
  };
}

function notAnswered(what: string): LogError {
  return new LogError('LOG_UNAVAILABLE', `the log did not answer ${what} within ${LOG_ANSWER_MS} ms`);
}
