/** Callers that append one after the other and readers that follow, while a test breaks brokers; then what is wrong. */
import type { Offset } from '@throughline/protocol';
import { sleep } from '../../clock.ts';
import { endOf, readAll, textOf, textRecord } from '../../conformance/records.ts';
import { hasLogCode } from '../../errors.ts';
import type { Log, PartitionRef } from '../../port.ts';
import { systemClock } from '../../system.ts';

export interface AppendLoad {
  /** Waits until each partition has this many acks more, and its reader has read the last of them. */
  progress(acks?: number, deadlineMs?: number): Promise<void>;
  /** How many ended so far. */
  counts(): { readonly acked: number; readonly refused: number; readonly unknown: number };
  /** Longest time without an ack on a partition so far, in ms. */
  longestSilenceMs(): number;
  /** Ends callers and readers and compares. Each entry is something that must not be; empty: all is well. */
  finish(): Promise<readonly string[]>;
}

export interface AppendLoadOptions {
  readonly log: Log;
  /** For readers and look-ups; another log, so that a reader does not know what the callers know. */
  readonly reader: Log;
  readonly refs: readonly PartitionRef[];
  /** Of each partition; each waits for its ack before it appends again. Default 2. */
  readonly callers?: number;
  /** Whether the end must never lie behind an ack. A leader that is cut off from the cluster names the end that it knows. Default true. */
  readonly isEndChecked?: boolean;
}

/** What was appended: `<partition>/<caller>/<number>`, numbered from 0 a caller. */
interface Lane {
  readonly ref: PartitionRef;
  readonly start: Offset;
  readonly acked: [Offset, string][];
  readonly refused: Set<string>;
  readonly unknown: Set<string>;
  readonly followed: [Offset, string][];
  highestAck: Offset;
  lastAckMs: number;
  longestMs: number;
}

const PAUSE_MS = 5;
const FINISH_MS = 60_000;

export async function startAppendLoad({
  log,
  reader,
  refs,
  callers = 2,
  isEndChecked = true,
}: AppendLoadOptions): Promise<AppendLoad> {
  const stop = new AbortController();
  const clock = systemClock;
  const faults: string[] = [];
  const lanes = await Promise.all(
    refs.map(async (ref): Promise<Lane> => {
      const start = await endOf(reader, ref);
      const lists = { acked: [], refused: new Set<string>(), unknown: new Set<string>(), followed: [] };
      return { ref, start, ...lists, highestAck: start - 1, lastAckMs: clock.monoMs(), longestMs: 0 };
    }),
  );

  const call = async (lane: Lane, caller: number): Promise<void> => {
    for (let count = 0; !stop.signal.aborted; count++) {
      const value = `${lane.ref.partition}/${caller}/${count}`;
      try {
        const { offsets } = await log.append(lane.ref, [textRecord(value)]);
        const offset = offsets[0] ?? -1;
        lane.acked.push([offset, value]);
        lane.highestAck = Math.max(lane.highestAck, offset);
        lane.longestMs = Math.max(lane.longestMs, clock.monoMs() - lane.lastAckMs);
        lane.lastAckMs = clock.monoMs();
      } catch (error) {
        if (hasLogCode(error, 'APPEND_REFUSED')) lane.refused.add(value);
        else if (hasLogCode(error, 'APPEND_UNKNOWN')) lane.unknown.add(value);
        else throw error;
      }
      await sleep(clock, PAUSE_MS);
    }
  };
  /** Until everything acked has been read. */
  const follow = async (lane: Lane): Promise<void> => {
    for (let at = lane.start; isCalling || at <= lane.highestAck;) {
      const batch = await reader.read(lane.ref, at, { waitMs: 500 });
      lane.followed.push(...batch.records.map((record): [Offset, string] => [record.offset, textOf(record)]));
      if (batch.bounds.end < batch.next) faults.push(`${lane.ref.partition}: a read's end lies behind what it gave`);
      at = batch.next;
    }
  };
  /** What is known to be in the log is inside of its bounds, whoever leads. */
  const look = async (lane: Lane): Promise<void> => {
    while (!stop.signal.aborted) {
      const known = lane.highestAck;
      const { end } = await reader.bounds(lane.ref);
      if (isEndChecked && end <= known)
        faults.push(`${lane.ref.partition}: end ${end} although ${known} was acknowledged`);
      await sleep(clock, PAUSE_MS);
    }
  };
  let isCalling = true;
  const calls = lanes.flatMap((lane) => Array.from({ length: callers }, (_, caller) => call(lane, caller)));
  const ended = Promise.all(calls).finally(() => {
    isCalling = false;
  });
  const work = Promise.all([ended, ...lanes.flatMap((lane) => [follow(lane), look(lane)])]);
  // It is awaited at the end; until then `progress` tells.
  let failure: Error | undefined;
  work.catch((error: unknown) => {
    failure = error instanceof Error ? error : new Error(String(error));
  });

  return {
    async progress(acks = 50, deadlineMs = 60_000) {
      const wanted = lanes.map((lane) => lane.acked.length + acks);
      const isDone = (): boolean =>
        lanes.every((lane, index) => {
          const target = lane.acked[(wanted[index] ?? 0) - 1];
          return target !== undefined && (lane.followed.at(-1)?.[0] ?? -1) >= target[0];
        });
      for (const untilMs = clock.monoMs() + deadlineMs; !isDone();) {
        if (failure !== undefined) throw failure;
        if (clock.monoMs() > untilMs) throw new Error(`no progress within ${deadlineMs} ms`);
        await sleep(clock, 20);
      }
    },
    counts: () => ({
      acked: lanes.reduce((sum, { acked }) => sum + acked.length, 0),
      refused: lanes.reduce((sum, { refused }) => sum + refused.size, 0),
      unknown: lanes.reduce((sum, { unknown }) => sum + unknown.size, 0),
    }),
    longestSilenceMs: () => Math.max(...lanes.map(({ longestMs }) => longestMs)),
    async finish() {
      stop.abort();
      // A reader that never gets there is ended by its own log.
      const timer = setTimeout(() => {
        void reader.close();
        faults.push(`readers did not reach the last ack within ${FINISH_MS} ms`);
      }, FINISH_MS);
      try {
        await work;
      } finally {
        clearTimeout(timer);
      }
      for (const lane of lanes) {
        const stored = (await readAll(reader, lane.ref, lane.start)).map((record): [Offset, string] => [
          record.offset,
          textOf(record),
        ]);
        faults.push(...compare(lane, stored));
      }
      return faults;
    },
  };
}

/** Pure: what must not be, in words. */
function compare(lane: Lane, stored: readonly (readonly [Offset, string])[]): string[] {
  const faults: string[] = [];
  const fault = (text: string): void => void faults.push(`${lane.ref.partition}: ${text}`);
  const places = new Map<string, Offset>();
  for (const [offset, value] of stored) {
    if (places.has(value)) fault(`${value} is there twice, at ${places.get(value)} and ${offset}`);
    places.set(value, offset);
    if (lane.refused.has(value)) fault(`${value} was refused and is at ${offset}`);
  }
  for (const [offset, value] of lane.acked)
    if (places.get(value) !== offset) fault(`${value} was acknowledged at ${offset} and is at ${places.get(value)}`);
  const newest = new Map<string, number>();
  for (const [offset, value] of stored) {
    const [, caller = '', count] = value.split('/');
    if (Number(count) < (newest.get(caller) ?? -1))
      fault(`${value} at ${offset} comes after a later one of its caller`);
    newest.set(caller, Number(count));
  }
  for (const [index, [offset, value]] of lane.followed.entries()) {
    const [storedOffset, storedValue] = stored[index] ?? [];
    if (offset === storedOffset && value === storedValue) continue;
    fault(`the reader's record ${index} is ${value} at ${offset}, in the log it is ${storedValue} at ${storedOffset}`);
    break;
  }
  if (lane.followed.length < stored.length && (lane.followed.at(-1)?.[0] ?? -1) < lane.highestAck)
    fault(`the reader stopped at ${lane.followed.at(-1)?.[0]}, before ${lane.highestAck}`);
  return faults;
}
