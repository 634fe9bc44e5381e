/** What the worker does in a turn: commit what waits, tell watchers, answer calls, look for other processes' commits. */
import { receiveMessageOnPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import type { Offset, Partition } from '@throughline/protocol';
import { sameAssignment } from '../assign-sticky.ts';
import { errorText, LogError } from '../errors.ts';
import { createAppender } from './appender.ts';
import type { AppendOutcome, QueuedAppend, SlotAppend } from './appender.ts';
import { createChores } from './chores.ts';
import { createCommittedOffsets } from './committed-offsets.ts';
import type { OpenDatabase } from './database.ts';
import { createLeaseTable } from './lease-table.ts';
import { SENT } from './messages.ts';
import type { Call, Fault, FromWorker, ToWorker, WorkerEvent, WorkerSettings } from './messages.ts';
import { createPollPace } from './poll-pace.ts';
import { createReader } from './reader.ts';
import { writeRows } from './record-codec.ts';
import { unavailableFault } from './sqlite-error.ts';
import { itemAt } from '../item-at.ts';

/** Bounds of one transaction. */
const GROUP_APPENDS = 1024;
const GROUP_BYTES = 16 * 1024 * 1024;
/** Bytes of one push to a watcher. */
const PUSH_BYTES = 256 * 1024;
/** Calls answered before waiting appends are looked at again. */
const CALLS_A_TURN = 16;
/** How long to sleep before the write lock is tried again. */
const BUSY_PAUSE_MS = 0.5;

const CLOSED: Fault = {
  code: 'APPEND_REFUSED',
  message: 'the log was closed before the append was written',
  details: { reason: 'closed' },
};
const BUSY: Fault = {
  code: 'APPEND_REFUSED',
  message: 'other processes kept the log busy for too long',
  details: { reason: 'other' },
};

interface Sweep {
  readonly id: number;
  readonly steps: (() => boolean)[];
}

export function createWorkerCore(
  { db, clusterId, partitions }: OpenDatabase,
  settings: WorkerSettings,
  port: MessagePort,
): { run(): void } {
  const signals = new Int32Array(settings.signals);
  const isDeleteSlot = (slot: number): boolean => slot < 2 * partitions || slot > 3 * partitions;
  const reader = createReader(db);
  const chores = createChores(db);
  const leases = createLeaseTable(db, partitions, settings.leaseMs);
  const committed = createCommittedOffsets(db, partitions);
  const appender = createAppender(db, {
    isCompactedSlot: (slot) => !isDeleteSlot(slot),
    retentionMs: settings.retentionMs,
    graceMs: settings.compactionGraceMs,
    hasCap: settings.maxBytes !== null,
  });
  const pace = createPollPace();

  const appends: QueuedAppend[] = [];
  const calls: Call[] = [];
  const watches = new Map<number, Offset>();
  const members = new Map<string, { group: string; member: string; assigned: readonly Partition[] }>();
  const groupVersions = new Map<string, number>();
  const starts = new Map<number, Offset>();
  const sweeps: Sweep[] = [];
  let acks: number[] = [];
  let events: WorkerEvent[] = [];
  let transfers: ArrayBuffer[] = [];
  let version = reader.version();
  let isBusy = false;
  let closingId: number | null = null;

  const fail = (ids: readonly number[], fault: Fault): void => {
    events.push({ kind: 'failed', ids, fault });
  };

  const send = (): void => {
    if (acks.length === 0 && events.length === 0) return;
    port.postMessage({ acks, events } satisfies FromWorker, transfers);
    acks = [];
    events = [];
    transfers = [];
  };

  const receive = (): void => {
    for (;;) {
      const message = receiveMessageOnPort(port) as { message: ToWorker } | undefined;
      if (message === undefined) return;
      const { appends: heads, bytes, wallMs, calls: more } = message.message;
      const buffer = bytes === null ? Buffer.alloc(0) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const deadlineMs = performance.now() + settings.busyMs;
      for (let at = 0; at < heads.length; at += 5)
        appends.push({
          id: itemAt(heads, at),
          slot: itemAt(heads, at + 1),
          bytes: buffer,
          at: itemAt(heads, at + 2),
          count: itemAt(heads, at + 3),
          size: itemAt(heads, at + 4),
          wallMs,
          deadlineMs,
        });
      for (const call of more) calls.push(call);
      pace.active();
    }
  };

  const nextGroup = (): QueuedAppend[] => {
    let bytes = 0;
    let count = 0;
    for (const queued of appends) {
      bytes += queued.size;
      if (count > 0 && (count >= GROUP_APPENDS || bytes > GROUP_BYTES)) break;
      count++;
    }
    return appends.slice(0, count);
  };

  const attempt = (group: readonly QueuedAppend[]): AppendOutcome => {
    try {
      return appender.append(group);
    } catch (error) {
      return { kind: 'failed', fault: { code: 'APPEND_UNKNOWN', message: errorText(error), details: {} } };
    }
  };

  const commit = (): void => {
    isBusy = false;
    if (appends.length === 0) return;
    const group = nextGroup();
    const outcome = attempt(group);
    if (outcome.kind === 'busy') {
      isBusy = true;
      const now = performance.now();
      const late = appends.filter((queued) => queued.deadlineMs <= now);
      if (late.length === 0) return;
      appends.splice(0, late.length);
      fail(
        late.map((queued) => queued.id),
        BUSY,
      );
      return;
    }
    appends.splice(0, group.length);
    if (outcome.kind === 'failed') {
      fail(
        group.map((queued) => queued.id),
        outcome.fault,
      );
      return;
    }
    for (const number of outcome.acks) acks.push(number);
    for (const [slot, appended] of outcome.slots) moveWatch(slot, appended);
  };

  /** The other thread has the bytes of its own appends: a watch that stands where they begin moves on without a push. */
  const moveWatch = (slot: number, { first, next }: SlotAppend): void => {
    const position = watches.get(slot);
    if (position === undefined) return;
    if (position === first) watches.set(slot, next);
    else push(slot, position);
  };

  const rows = (
    slot: number,
    position: Offset,
    maxBytes: number,
  ): { bytes: Uint8Array | null; count: number; next: Offset; start: Offset; end: Offset } | LogError => {
    const outcome = reader.read(slot, position, maxBytes);
    if (outcome.kind === 'out-of-range') return outcome.refusal;
    const { rows: found, next, bounds } = outcome;
    const bytes = found.length === 0 ? null : writeRows(found);
    if (bytes !== null) transfers.push(bytes.buffer as ArrayBuffer);
    return { bytes, count: found.length, next, start: bounds.start, end: bounds.end };
  };

  const push = (slot: number, position: Offset): void => {
    watches.delete(slot);
    const found = rows(slot, position, PUSH_BYTES);
    if (found instanceof LogError) {
      // The reader asks again from there and gets the refusal itself.
      events.push({ kind: 'push', slot, position, bytes: null, count: 0, next: position, start: 0, end: position });
      return;
    }
    events.push({ kind: 'push', slot, position, ...found });
  };

  const poll = (): void => {
    const seen = reader.version();
    if (seen === version) return;
    version = seen;
    pace.active();
    for (const [slot, start, end] of reader.all()) {
      const position = watches.get(slot);
      if (position !== undefined && end > position) push(slot, position);
      noteStart(slot, start);
    }
    for (const group of new Set([...members.values()].map((each) => each.group))) tellGroup(group);
  };

  const noteStart = (slot: number, start: Offset): void => {
    if ((starts.get(slot) ?? 0) === start) return;
    starts.set(slot, start);
    events.push({ kind: 'started', slot, start });
  };

  const tellGroup = (group: string, always?: string): void => {
    const current = leases.version(group);
    const isNew = groupVersions.get(group) !== current;
    groupVersions.set(group, current);
    for (const each of members.values()) {
      if (each.group !== group || (!isNew && each.member !== always)) continue;
      const assigned = leases.assignedTo(group, each.member);
      if (each.member !== always && sameAssignment(assigned, each.assigned)) continue;
      each.assigned = assigned;
      events.push({ kind: 'assigned', group, member: each.member, assigned });
    }
  };

  const allSlots = (): number[] => reader.all().map(([slot]) => slot);

  const sweep = (id: number, wallMs: number, force: boolean): void => {
    if (force) chores.skipGrace();
    const beforeMs = wallMs - settings.retentionMs;
    const steps = allSlots()
      .filter(isDeleteSlot)
      .map((slot) => () => chores.evictOlder(slot, beforeMs));
    steps.push(() => chores.compact(wallMs));
    sweeps.push({ id, steps });
  };

  const answer = (call: Call): void => {
    switch (call.kind) {
      case 'fetch': {
        const found = rows(call.slot, call.position, call.maxBytes);
        if (found instanceof LogError) {
          fail([call.id], { code: found.code, message: found.message, details: found.details });
          return;
        }
        const isWatched = call.watch && found.count === 0;
        if (isWatched) watches.set(call.slot, found.next);
        noteStart(call.slot, found.start);
        events.push({ kind: 'batch', id: call.id, slot: call.slot, isWatched, ...found });
        return;
      }
      case 'bounds': {
        const { start, end } = reader.bounds(call.slot);
        noteStart(call.slot, start);
        events.push({ kind: 'bounds', id: call.id, slot: call.slot, start, end });
        return;
      }
      case 'renew': {
        const { group, member } = call;
        leases.renew(group, member, call.wallMs, call.monoMs);
        const key = `${group}\n${member}`;
        if (!members.has(key)) members.set(key, { group, member, assigned: [] });
        tellGroup(group, member);
        events.push({ kind: 'done', id: call.id });
        return;
      }
      case 'commit':
        committed.write(call.group, call.offsets);
        events.push({ kind: 'done', id: call.id });
        return;
      case 'committed':
        events.push({ kind: 'committed', id: call.id, offsets: committed.read(call.group) });
        return;
      case 'leave':
        members.delete(`${call.group}\n${call.member}`);
        leases.leave(call.group, call.member);
        tellGroup(call.group);
        events.push({ kind: 'done', id: call.id });
        return;
      case 'sweep':
        if (call.force || chores.claim(call.wallMs, call.everyMs)) sweep(call.id, call.wallMs, call.force);
        else events.push({ kind: 'done', id: call.id });
        return;
      case 'evict':
        sweeps.push({ id: call.id, steps: [() => chores.evictBefore(call.slot, call.before)] });
        return;
      case 'inject':
        appender.inject(call.fault);
        events.push({ kind: 'done', id: call.id });
        return;
      case 'close':
        closingId = call.id;
        return;
    }
  };

  const answerSome = (): void => {
    for (const call of calls.splice(0, CALLS_A_TURN)) {
      try {
        answer(call);
      } catch (error) {
        fail([call.id], unavailableFault(error));
      }
    }
  };

  /** One step of the oldest sweep, then whoever waits comes first again. */
  const sweepSome = (): void => {
    const current = sweeps[0];
    if (current === undefined) return;
    try {
      const isDone = current.steps[0]?.() ?? true;
      if (isDone) current.steps.shift();
      if (current.steps.length > 0) return;
      sweeps.shift();
      for (const [slot, start] of reader.all()) noteStart(slot, start);
      events.push({ kind: 'done', id: current.id });
    } catch (error) {
      sweeps.shift();
      fail([current.id], unavailableFault(error));
    }
  };

  const tolerate = (run: () => void): void => {
    try {
      run();
    } catch {
      // A read of the file failed: those who wait ask again by themselves and get the error as an answer to that.
      for (const [slot, position] of watches)
        events.push({ kind: 'push', slot, position, bytes: null, count: 0, next: position, start: 0, end: position });
      watches.clear();
    }
  };

  const sleepMs = (): number => {
    if (calls.length > 0 || sweeps.length > 0) return 0;
    if (isBusy) return BUSY_PAUSE_MS * (0.5 + Math.random());
    if (appends.length > 0) return 0;
    return pace.sleepMs(watches.size > 0, members.size > 0);
  };

  const turn = (): void => {
    receive();
    commit();
    tolerate(poll);
    answerSome();
    if (appends.length === 0 || isBusy) sweepSome();
    send();
  };

  const close = (id: number): void => {
    fail(
      appends.splice(0).map((queued) => queued.id),
      CLOSED,
    );
    for (const { group, member } of members.values())
      tolerate(() => {
        leases.leave(group, member);
      });
    tolerate(() => {
      db.close();
    });
    events.push({ kind: 'done', id });
    send();
  };

  return {
    run() {
      events.push({ kind: 'opened', clusterId, partitions });
      send();
      for (;;) {
        const sent = Atomics.load(signals, SENT);
        turn();
        if (closingId !== null) break;
        const ms = sleepMs();
        if (ms > 0) Atomics.wait(signals, SENT, sent, ms);
      }
      close(closingId);
    },
  };
}
