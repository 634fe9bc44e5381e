/**
 * The log as a simulated process sees it: the memory log behind seeded latency. A request is on its way for a while,
 * takes effect, and its completion is on its way back; a process that died meanwhile hears nothing, though its request
 * may still take effect.
 */
import { LogError } from '@throughline/log';
import type { Appended, Log, PartitionRef } from '@throughline/log';
import type { MemoryStore } from '@throughline/log/memory';
import { openMemoryLog } from '@throughline/log/memory';
import { decodeText } from '@throughline/protocol';
import type { RecordInput } from '@throughline/protocol';
import type { VirtualTime } from '@throughline/testkit';
import { refName } from './conditions.ts';
import type { Conditions } from './conditions.ts';
import { joinDistorted } from './sim-membership.ts';
import type { DistortableMembership } from './sim-membership.ts';
import type { AwaitKind, SimProcess } from './sim-process.ts';
import type { Trace } from './trace.ts';

export interface SimLogOptions {
  readonly store: MemoryStore;
  readonly time: VirtualTime;
  readonly process: SimProcess;
  readonly conditions: Conditions;
  readonly trace: Trace;
  /** Called when an append has taken effect, before its completion is on its way. */
  onEffect(process: SimProcess, to: PartitionRef, records: readonly RecordInput[]): void;
  /** Called when it has joined the group. */
  onJoin(process: SimProcess, membership: DistortableMembership): void;
}

const TICK_MS = 0.001;
const UNKNOWN_AFTER_MS = 400;
const LATE_MS = 3000;
/** Until a process hears by itself of partitions that were added. */
const GROWTH_NEWS_MS = 500;
/** From one look at the ids of topics to the next. */
const LOOK_MS = 5000;

export function openSimLog(options: SimLogOptions): Log {
  const { store, time, process, conditions, trace } = options;
  const { chance } = conditions;
  const broker = time.clock('broker');
  // Appends in flight outlive the process, so they go through a handle of the broker's own.
  const remote = openMemoryLog(store, { clock: broker });
  const own = openMemoryLog(store, { clock: process.clock, newsMs: GROWTH_NEWS_MS });
  const laneAt = new Map<string, number>();
  let isClosed = false;
  process.onDeath(() => {
    own.crash();
  });

  const wayMs = (): number => TICK_MS + chance.unit() * conditions.latency.logMs;
  /** Hands an outcome to the process, unless it is dead by then. */
  const complete = (kind: AwaitKind, run: () => void): void => {
    const cut = conditions.cutOff.get(process.name);
    const cutMs = cut === undefined || cut.way === 'out' ? 0 : Math.max(0, cut.untilMs - time.nowMs());
    const slowMs = conditions.slowCompletionMs.get(process.name) ?? 0;
    process.clock.setTimer(cutMs + wayMs() + (slowMs === 0 ? 0 : chance.unit() * slowMs), () => {
      process.hears(kind, run);
    });
  };
  const effectAt = (name: string): number => {
    const now = time.nowMs();
    const cut = conditions.cutOff.get(process.name);
    const at = Math.max(
      now + wayMs() + chance.unit() * (conditions.slowAppendMs.get(process.name) ?? 0),
      conditions.stalledUntil.get(name) ?? 0,
      cut === undefined || cut.way === 'back' ? 0 : cut.untilMs + wayMs(),
      (laneAt.get(name) ?? 0) + TICK_MS,
    );
    laneAt.set(name, at);
    return at - now;
  };

  const append = (to: PartitionRef, records: readonly RecordInput[]): Promise<Appended> => {
    if (isClosed) return Promise.reject(new LogError('CLOSED', 'the log is closed'));
    const name = refName(to);
    const fate = conditions.appendFates === null ? 'ok' : chance.weighted(conditions.appendFates);
    return new Promise((resolve, reject) => {
      const take = (tell: boolean): void => {
        // A request of a process that died on its way may or may not arrive.
        if (!process.isAlive() && chance.happens(0.5)) {
          trace.add('log', `${process.name} ${name} lost with its process`);
          return;
        }
        remote.append(to, records).then(
          (appended) => {
            trace.add('log', `${process.name} ${name} ${appended.offsets.join(',')} ${records.map(typeOf).join(',')}`);
            options.onEffect(process, to, records);
            if (tell)
              complete('append', () => {
                resolve(appended);
              });
          },
          (error: unknown) => {
            if (tell)
              complete('append', () => {
                reject(toError(error));
              });
          },
        );
      };
      const fail = (code: 'APPEND_REFUSED' | 'APPEND_UNKNOWN', afterMs: number): void => {
        process.clock.setTimer(afterMs, () => {
          trace.add('log', `${process.name} ${name} ${code} (${fate})`);
          const reason = fate === 'full' ? 'size-cap' : 'other';
          process.hears('append', () => {
            reject(new LogError(code, `simulated: ${fate}`, code === 'APPEND_REFUSED' ? { reason } : {}));
          });
        });
      };
      switch (fate) {
        case 'ok':
          broker.setTimer(effectAt(name), () => {
            take(true);
          });
          break;
        case 'refused':
        case 'full':
          fail('APPEND_REFUSED', wayMs());
          break;
        case 'unknown-stored':
          broker.setTimer(effectAt(name), () => {
            take(false);
          });
          fail('APPEND_UNKNOWN', chance.unit() * UNKNOWN_AFTER_MS);
          break;
        case 'unknown-lost':
          fail('APPEND_UNKNOWN', chance.unit() * UNKNOWN_AFTER_MS);
          break;
        case 'unknown-late': {
          const afterMs = chance.unit() * UNKNOWN_AFTER_MS;
          fail('APPEND_UNKNOWN', afterMs);
          broker.setTimer(afterMs + chance.unit() * LATE_MS, () => {
            take(false);
          });
          break;
        }
      }
    });
  };

  /** Passes on what the process's own handle gives, after a while. */
  const delayed = <T>(work: Promise<T>, asHeard = (value: T): T => value): Promise<T> =>
    new Promise((resolve, reject) => {
      work.then(
        (value) => {
          complete('read', () => {
            resolve(asHeard(value));
          });
        },
        (error: unknown) => {
          if (process.isAlive()) reject(toError(error));
        },
      );
    });

  let [lookedMs, ids] = [process.clock.monoMs(), new Map(conditions.madeAnew)];
  /** How often the topic was made anew, as the process knew it when it last looked. */
  const madeAnew = ({ topic }: PartitionRef): number => {
    const now = process.clock.monoMs();
    if (now - lookedMs >= LOOK_MS) [lookedMs, ids] = [now, new Map(conditions.madeAnew)];
    return ids.get(topic) ?? 0;
  };

  return {
    description: own.description,
    describe: () => delayed(own.describe()),
    onGrown: (listener) => own.onGrown(listener),
    append,
    read(from, position, readOptions) {
      if (!isClosed && conditions.readFailure > 0 && chance.happens(conditions.readFailure))
        return delayed(Promise.reject(new LogError('LOG_UNAVAILABLE', 'simulated: the log does not answer')));
      return delayed(own.read(from, position, readOptions), (batch) => ({ ...batch, madeAnew: madeAnew(from) }));
    },
    bounds: (of) => delayed(own.bounds(of)),
    join: (joinOptions) =>
      delayed(joinDistorted(own, joinOptions, process)).then(({ membership, distortable }) => {
        options.onJoin(process, distortable);
        return membership;
      }),
    committed: (group) => delayed(own.committed(group)),
    close() {
      isClosed = true;
      return own.close();
    },
  };
}

function typeOf(record: RecordInput): string {
  const header = (name: string): string => {
    const found = record.headers.find(([known]) => known === name);
    return found === undefined ? '' : decodeText(found[1]);
  };
  const key = record.key === null ? '' : decodeText(record.key).slice(0, 6);
  const value = record.value === null ? '-' : decodeText(record.value).slice(0, 400);
  return `${header('type')}[${key} ${header('stream')} o=${header('owner')} ${header('end')}${header('attempt')}${header('attachment')}] ${value}`;
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
