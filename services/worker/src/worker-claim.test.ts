/** Who owns a partition, and how it is handed on. */
import { afterEach, describe, expect, it } from 'vitest';
import { LogError } from '@throughline/log';
import {
  decodeText,
  EVENT_TYPE,
  makeRecord,
  readCheckpoint,
  readCheckpointHint,
  readWorkerRecord,
} from '@throughline/protocol';
import type { EventRecord } from '@throughline/protocol';
import { silentLogger } from '@throughline/telemetry';
import type { Logger } from '@throughline/telemetry';
import { errorOf, textOf, typeOf } from './testing/messages.ts';
import { EVENTS, META, openBench } from './testing/worker-bench.ts';
import type { Bench, WorkerChoice } from './testing/worker-bench.ts';

let bench: Bench;
afterEach(() => bench.dispose());

const QUICK: WorkerChoice = { config: { heartbeatMs: 100, deadAfterMs: 400, drainMs: 2000 } };
const ofType = (type: EventRecord['body']['type']): readonly EventRecord[] =>
  bench.accepted().filter(({ body }) => body.type === type);
const heartbeats = (): readonly (ReturnType<typeof readWorkerRecord> & object)[] =>
  bench.records(META).flatMap((record) => {
    const read = decodeText(record.key!).startsWith('worker/') ? readWorkerRecord(record) : null;
    return read === null ? [] : [read];
  });

describe('a claim', () => {
  it('[WRK-CLAIM] names the claim in force and lists the valid ones, and only then the worker owns', async () => {
    bench = await openBench(1);
    const first = await bench.start(QUICK);
    expect(first.worker.owned()).toEqual([0]);
    first.crash();
    const second = await bench.start(QUICK);
    await bench.until(() => second.worker.owned().length === 1);
    const [a, b] = ofType('claimed');
    expect([a?.body, b?.body]).toMatchObject([{ predecessor: null }, { predecessor: a?.offset }]);
    expect(JSON.parse(decodeText(b!.record.value!))).toEqual({ claims: [a?.offset] });
  });

  it('[WRK-CLAIM] is told in meta before its first checkpoint, so that readers know it when its record is evicted', async () => {
    bench = await openBench(9);
    const first = await bench.start(QUICK);
    first.crash();
    // The second owner dies at its first checkpoint.
    const second = bench.starting({
      ...QUICK,
      wrap: (own) => ({
        ...own,
        append: (to, records) => {
          const isCheckpoint = to.topic === 'events' && typeOf(records[0]?.headers ?? []) === EVENT_TYPE.checkpoint;
          if (isCheckpoint) second.log.crash();
          return own.append(to, records);
        },
      }),
    });
    second.started.catch(() => undefined);
    const hints = () =>
      bench
        .records(META)
        .flatMap((record) => (decodeText(record.key!).startsWith('checkpoint/') ? [readCheckpointHint(record)!] : []));
    await bench.until(() => ofType('claimed').length === 2 && hints().length >= 2);
    const [a, b] = ofType('claimed');
    expect(hints().at(-1)).toMatchObject({ offset: hints()[0]?.offset, claims: [a?.offset, b?.offset] });
    expect(ofType('checkpoint').filter(({ offset }) => offset > b!.offset)).toEqual([]);
  });

  it('[WRK-CLAIM] that another forestalled is void, and is tried again when its turn comes', async () => {
    bench = await openBench(2);
    let rival = true;
    const { started } = bench.starting({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        append: async (to, records) => {
          if (rival && to.topic === 'events') {
            rival = false;
            await log.append(EVENTS, [claim('rival', null)]);
          }
          return log.append(to, records);
        },
      }),
    });
    const worker = await bench.time.run(started);
    await bench.until(() => worker.owned().length === 1);
    expect(ofType('claimed').map(({ body }) => (body.type === 'claimed' ? body.worker : ''))).toEqual([
      'rival',
      worker.name,
    ]);
    expect(bench.records(EVENTS).filter((record) => typeOf(record.headers) === EVENT_TYPE.claimed)).toHaveLength(3);
    await bench.time.run(worker.stop());
  });

  it('[WRK-CLAIM] whose append has an unknown outcome is settled by reading the log', async () => {
    bench = await openBench(3);
    for (const fault of ['unknown-stored', 'unknown-lost'] as const) {
      let isFirst = true;
      const { started, log } = bench.starting({
        ...QUICK,
        wrap: (own) => ({
          ...own,
          append: (to, records) => {
            own.failAppends(to.topic === 'events' && isFirst ? fault : null);
            if (to.topic === 'events') isFirst = false;
            return own.append(to, records);
          },
        }),
      });
      const worker = await bench.time.run(started);
      expect(worker.owned()).toEqual([0]);
      await bench.time.run(worker.stop());
      log.crash();
    }
  });

  it('[WRK-CLAIM] a worker that lost its partition while it stays assigned claims it again', async () => {
    bench = await openBench(4);
    const { worker } = await bench.start(QUICK);
    const [own] = ofType('claimed');
    await bench.log.append(EVENTS, [claim('rival', own!.offset)]);
    await bench.until(() => ofType('claimed').length === 3);
    await bench.until(() => worker.owned().length === 1);
  });

  it('[WRK-PLACES] a partition that is lost gives the places of its calls back', async () => {
    bench = await openBench(29);
    await bench.start({ config: { ...QUICK.config, maxRunning: 1 } });
    await bench.open('k');
    await bench.call('k', 1, 'hang');
    await bench.until(() => bench.runs.length === 1);
    const [own] = ofType('claimed');
    await bench.log.append(EVENTS, [claim('rival', own!.offset)]);
    await bench.until(() => ofType('claimed').length === 3);
    expect(textOf((await bench.ended(await bench.call('k', 2, 'effect'))).messages[0])).toBe('effect ');
  });

  it('[WRK-CLAIM] a worker without a partition is ready, and takes one when it gets it', async () => {
    bench = await openBench(5);
    const first = await bench.start(QUICK);
    const spare = await bench.start(QUICK);
    expect(spare.worker.owned()).toEqual([]);
    await bench.time.run(first.worker.stop());
    await bench.until(() => spare.worker.owned().length === 1);
  });
});

describe('succession', () => {
  it('[WRK-SUCCESSION] a living owner is waited for, whoever is assigned', async () => {
    bench = await openBench(6);
    const first = await bench.start(QUICK);
    await bench.open('k');
    bench.store.controls.expireMember('workers', first.worker.name);
    const second = await bench.start(QUICK);
    const at = await bench.call('k', 1, 'effect', { token: 't' });
    await bench.ended(at);
    expect(bench.runs).toHaveLength(1);
    expect(first.worker.owned().length + second.worker.owned().length).toBeLessThanOrEqual(1);
  });

  it('[WRK-SUCCESSION] a worker that slept reads the heartbeats it missed before it takes an owner for dead', async () => {
    bench = await openBench(7);
    await bench.start(QUICK);
    let isAsleep = false;
    let assign = (_assigned: readonly number[]): void => undefined;
    await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        read: (from, position, options) =>
          isAsleep && from.topic === 'meta' ? waits(options?.signal) : log.read(from, position, options),
        join: (options) => {
          assign = options.onChange;
          return log.join(options);
        },
      }),
    });
    isAsleep = true;
    await bench.time.advance(5000);
    assign([0]);
    await bench.time.advance(2000);
    expect(ofType('claimed')).toHaveLength(1);
  });

  it('[WRK-SUCCESSION] [WRK-WATCH] an owner whose heartbeats stopped is replaced, and what it writes later is fenced', async () => {
    bench = await openBench(8);
    const first = await bench.start(QUICK);
    await bench.open('k');
    await bench.call('k', 1, 'effect', { ms: 3000, token: 'old' });
    await bench.until(() => bench.runs.length === 1);
    bench.time.pause(first.process);
    const second = await bench.start(QUICK);
    await bench.until(() => second.worker.owned().length === 1);
    const late = await bench.call('k', 2, 'effect', { token: 'new' });
    bench.time.resume(first.process);
    await bench.ended(late);
    await bench.time.advance(10_000);
    expect(bench.runs.map(({ worker, token }) => `${worker} ${token}`)).toEqual(['worker-1 old', 'worker-2 new']);
    expect(bench.stream('r2')).toMatchObject({ ends: 1, late: 0 });
    expect(first.worker.owned()).toEqual([]);
  });

  it('[WRK-END] a paused owner that wakes up ends no session of its successor', async () => {
    bench = await openBench(9);
    const choice: WorkerChoice = { ...QUICK, idleTtl: 60 };
    const first = await bench.start(choice);
    await bench.open('k');
    bench.time.pause(first.process);
    const second = await bench.start(choice);
    for (let id = 1; id <= 5; id++) {
      await bench.ended(await bench.call('k', id, 'effect'));
      await bench.time.advance(30_000);
    }
    bench.time.resume(first.process);
    await bench.time.advance(20_000);
    expect(bench.session('k').endReason).toBeNull();
    expect(second.worker.owned()).toEqual([0]);
  });

  it('[WRK-IDLE] after a sleep nobody is idle before it was read what came meanwhile', async () => {
    bench = await openBench(33);
    let isAsleep = false;
    const { process } = await bench.start({
      ...QUICK,
      idleTtl: 20,
      wrap: (log) => ({
        ...log,
        read: async (from, position, options) => {
          while (isAsleep && from.topic === 'inbound')
            await new Promise<void>((resolve) => bench.time.clock().setTimer(50, resolve));
          return log.read(from, position, options);
        },
      }),
    });
    await bench.open('k');
    isAsleep = true;
    // The read that waits already ends first.
    await bench.time.advance(6000);
    bench.time.pause(process);
    await bench.time.advance(30_000);
    const at = await bench.call('k', 1, 'lookup');
    bench.time.resume(process);
    await bench.time.advance(10);
    isAsleep = false;
    expect(textOf((await bench.ended(at)).messages[0])).toBe('lookup ');
    expect(bench.session('k').endReason).toBeNull();
  });

  it('[WRK-END] an owner that does not know that it was replaced ends no session of its successor', async () => {
    bench = await openBench(30);
    const choice: WorkerChoice = { ...QUICK, idleTtl: 20 };
    let isCutOff = false;
    await bench.start({
      ...choice,
      wrap: (log) => ({
        ...log,
        read: (from, position, options) => (isCutOff ? waits(options?.signal) : log.read(from, position, options)),
        append: (to, records) => {
          log.failAppends(isCutOff && to.topic === 'meta' ? 'refused' : null);
          return log.append(to, records);
        },
      }),
    });
    await bench.open('k');
    isCutOff = true;
    // Reads that wait already end first.
    await bench.time.advance(6000);
    await bench.log.append(EVENTS, [claim('successor', ofType('claimed')[0]!.offset)]);
    await bench.time.advance(60_000);
    const ended = bench.records(EVENTS).filter(({ headers }) => typeOf(headers) === EVENT_TYPE.sessionEnded);
    expect(ended).toHaveLength(1);
    expect(bench.session('k').endReason).toBeNull();
  });

  it('[WRK-RESTORE] a record that a former owner wrote late is written over again', async () => {
    bench = await openBench(10);
    await bench.start(QUICK);
    await bench.open('k');
    const record = bench.session('k').record!;
    const stale = JSON.stringify({ ...record, initialized: false, logLevel: 'debug' });
    await bench.log.append({ topic: 'sessions', partition: 0 }, [
      makeRecord('session', 'k', stale, { server: 'demo' }),
    ]);
    await bench.until(() => bench.session('k').record?.logLevel === null);
    expect(bench.session('k').record).toEqual(record);
  });
});

describe('heartbeats', () => {
  it('[WRK-HEARTBEAT] name the partitions that take new sessions, and end with a tombstone', async () => {
    bench = await openBench(11);
    const { worker } = await bench.start(QUICK);
    await bench.until(() => heartbeats().at(-1)?.partitions.length === 1);
    expect(heartbeats().at(-1)).toMatchObject({
      worker: worker.name,
      epoch: bench.epoch(),
      partitions: [0],
      leaving: false,
    });
    await bench.time.run(worker.stop());
    const last = bench.records(META).at(-1)!;
    expect([decodeText(last.key!), last.value]).toEqual([`worker/${worker.name}`, null]);
    expect(heartbeats().at(-1)).toMatchObject({ partitions: [], leaving: true });
  });

  it('[WRK-HEARTBEAT] name no partition while the worker hosts as many sessions as it may', async () => {
    bench = await openBench(12);
    await bench.start({ ...QUICK, maxSessions: 1 });
    await bench.open('k');
    await bench.until(() => heartbeats().at(-1)?.partitions.length === 0);
    await bench.end('k');
    await bench.until(() => heartbeats().at(-1)?.partitions.length === 1);
  });

  it('[WRK-STOOD] tell once that the process stood still for so long that it counted as gone', async () => {
    bench = await openBench(29);
    const warned: unknown[][] = [];
    const logger: Logger = {
      ...silentLogger,
      child: () => logger,
      warn: (...line) => void warned.push(line),
    };
    const { process } = await bench.start({ logger, config: { heartbeatMs: 1000, deadAfterMs: 4000 } });
    const stands = (): unknown[][] => warned.filter(([text]) => String(text).includes('stood still'));
    await bench.time.advance(10_000);
    bench.time.pause(process);
    await bench.time.advance(2500);
    bench.time.resume(process);
    await bench.time.advance(10_000);
    expect(stands()).toEqual([]);
    bench.time.pause(process);
    await bench.time.advance(9000);
    bench.time.resume(process);
    await bench.time.advance(10_000);
    expect(stands()).toEqual([[expect.any(String), { stoodMs: expect.any(Number) as number, deadAfterMs: 4000 }]]);
    const { stoodMs } = stands()[0]![1] as { stoodMs: number };
    expect(stoodMs).toBeGreaterThan(7900);
    expect(stoodMs).toBeLessThan(9100);
  });

  it('[WRK-HEARTBEAT] do not pile up while the log does not answer', async () => {
    bench = await openBench(13);
    let waiting = 0;
    let isStuck = false;
    await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        append: (to, records) => {
          if (!isStuck || to.topic !== 'meta') return log.append(to, records);
          waiting++;
          return new Promise(() => undefined);
        },
      }),
    });
    isStuck = true;
    await bench.time.advance(4000);
    expect(waiting).toBeLessThan(15);
  });
});

describe('leaving', () => {
  it('[WRK-LEAVE] what runs is finished, then the last checkpoint and the release stand in the log', async () => {
    bench = await openBench(14);
    const said: string[] = [];
    const logger: Logger = { ...silentLogger, info: (event) => void said.push(event), child: () => logger };
    const { worker } = await bench.start({ ...QUICK, logger });
    await bench.open('k');
    const at = await bench.call('k', 1, 'effect', { ms: 1000 });
    await bench.until(() => bench.runs.length === 1);
    await bench.time.run(worker.stop());
    expect(textOf(bench.stream(`r${at}`).messages[0])).toBe('effect ');
    const last = bench.accepted().slice(-2);
    expect(last.map(({ body }) => body.type)).toEqual(['checkpoint', 'released']);
    expect(readCheckpoint(last[0]!.record)?.open).toEqual([]);
    expect(said.slice(-3)).toEqual(['claimed', 'leaving', 'released']);
  });

  it('[WRK-LEAVE] requests that come meanwhile, or wait, are left to the successor, which runs them once', async () => {
    bench = await openBench(15);
    const choice: WorkerChoice = { config: { ...QUICK.config, maxRunningPerSession: 1 } };
    const first = await bench.start(choice);
    await bench.open('k');
    const running = await bench.call('k', 1, 'effect', { ms: 1000, token: 'a' });
    const waiting = await bench.call('k', 2, 'effect', { token: 'b' });
    await bench.until(() => bench.runs.length === 1);
    const stopped = first.worker.stop();
    await bench.time.advance(100);
    const late = await bench.call('k', 3, 'effect', { token: 'c' });
    const second = await bench.start(choice);
    await bench.time.run(stopped);
    for (const at of [running, waiting, late]) expect(textOf((await bench.ended(at)).messages[0])).toMatch(/^effect/);
    expect(bench.runs.map(({ token, worker }) => `${token} ${worker}`)).toEqual([
      'a worker-1',
      'b worker-2',
      'c worker-2',
    ]);
    expect(second.worker.owned()).toEqual([0]);
  });

  it('[WRK-LEAVE] an answer of the client and a cancel still pass while what runs is finished', async () => {
    bench = await openBench(16);
    const { worker, host } = await bench.start(QUICK);
    await bench.open('k');
    const asked = await bench.call('k', 1, 'ask');
    const hung = await bench.call('k', 2, 'hang');
    await bench.until(() => bench.stream(`r${asked}`).messages.length === 1 && bench.runs.length === 2);
    const stopped = worker.stop();
    await bench.time.advance(100);
    const id = (bench.stream(`r${asked}`).messages[0] as { id: string }).id;
    await bench.post('k', { jsonrpc: '2.0', id, result: {} });
    await bench.post('k', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } });
    await bench.time.run(stopped);
    expect(bench.stream(`r${hung}`)).toEqual({ messages: [], ends: 1, late: 0 });
    expect(host.opened[0]?.methods.slice(-2)).toEqual(['response', 'notifications/cancelled']);
  });

  it('[WRK-LEAVE] what does not finish in time is cut short before the release, and fails explicitly', async () => {
    bench = await openBench(17);
    const wasClosed: unknown[] = [];
    const first = await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        append: (to, records) => {
          if (records.some(({ headers }) => typeOf(headers) === EVENT_TYPE.released))
            wasClosed.push(first.host.opened[0]?.isClosed);
          return log.append(to, records);
        },
      }),
    });
    await bench.open('k');
    const at = await bench.call('k', 1, 'hang');
    await bench.until(() => bench.runs.length === 1);
    await bench.time.run(first.worker.stop());
    expect(wasClosed).toEqual([true]);
    await bench.start(QUICK);
    expect(errorOf((await bench.ended(at)).messages[0])).toEqual({ code: 'OWNER_LOST', mayHaveRun: true });
    expect(bench.runs).toHaveLength(1);
  });

  it('[WRK-LEAVE] without time to drain the partition is released all the same', async () => {
    bench = await openBench(18);
    const first = await bench.start({ config: { ...QUICK.config, drainMs: 0 } });
    await bench.time.run(first.worker.stop());
    expect(ofType('released')).toHaveLength(1);
  });

  it('[WRK-LEAVE] a worker that stops at once is not waited for', async () => {
    bench = await openBench(19);
    const first = await bench.start({ config: { ...QUICK.config, deadAfterMs: 60_000 } });
    await bench.time.run(first.worker.stop({ drain: false }));
    const since = bench.time.nowMs();
    const second = await bench.start(QUICK);
    await bench.until(() => second.worker.owned().length === 1);
    expect(bench.time.nowMs() - since).toBeLessThan(5000);
  });

  it('[WRK-LEAVE] a partition that is taken away and given back is claimed after it was released', async () => {
    bench = await openBench(20);
    let assign = (_assigned: readonly number[]): void => undefined;
    const { worker } = await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        join: (options) => {
          assign = options.onChange;
          return log.join(options);
        },
      }),
    });
    await bench.open('k');
    const at = await bench.call('k', 1, 'effect', { ms: 1000 });
    await bench.until(() => bench.runs.length === 1);
    assign([]);
    await bench.until(() => worker.owned().length === 0);
    assign([0]);
    await bench.until(() => worker.owned().length === 1);
    expect(textOf(bench.stream(`r${at}`).messages[0])).toBe('effect ');
    const order = bench
      .accepted()
      .flatMap(({ body }) => (['claimed', 'released'].includes(body.type) ? [body.type] : []));
    expect(order).toEqual(['claimed', 'released', 'claimed']);
  });

  it('[WRK-LEAVE] a worker that is stopped while it claims leaves nothing that its successor waits for', async () => {
    bench = await openBench(21);
    let isHeld = false;
    const { started } = bench.starting({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        read: (from, position, options) =>
          isHeld && from.topic === 'events' ? waits(options?.signal) : log.read(from, position, options),
        append: (to, records) => {
          if (to.topic === 'events') isHeld = true;
          return log.append(to, records);
        },
      }),
    });
    await bench.until(() => ofType('claimed').length === 1);
    bench.store.controls.expireMember('workers', 'nobody');
    const worker = await bench.time.run(started);
    isHeld = false;
    await bench.time.run(worker.stop());
    const second = await bench.start(QUICK);
    expect(second.worker.owned()).toEqual([0]);
  });

  it('[WRK-LEAVE] a stop comes to its end though the log answers no append', async () => {
    bench = await openBench(22);
    let isStuck = false;
    const { worker } = await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        append: (to, records) => (isStuck ? new Promise(() => undefined) : log.append(to, records)),
      }),
    });
    await bench.open('k');
    isStuck = true;
    await bench.call('k', 1, 'effect');
    await bench.time.run(worker.stop(), 30_000);
    expect(worker.owned()).toEqual([]);
    expect(worker.unreleased()).toEqual([0]);
  });

  it('[WRK-LEAVE] a stop says which partitions could not be released: those of a log without room, and none if it has room again in time', async () => {
    for (const [seed, roomAfterMs, unreleased] of [
      [32, 600_000, [0]],
      [33, 1000, []],
    ] as const) {
      bench = await openBench(seed);
      let isFull = false;
      const { worker } = await bench.start({
        ...QUICK,
        wrap: (log) => ({
          ...log,
          append: (to, records) =>
            isFull
              ? Promise.reject(new LogError('APPEND_REFUSED', 'no space left', { reason: 'disk-full' }))
              : log.append(to, records),
        }),
      });
      await bench.open('k');
      isFull = true;
      bench.time.clock('disk').setTimer(roomAfterMs, () => {
        isFull = false;
      });
      expect(worker.unreleased()).toEqual([]);
      await bench.time.run(worker.stop(), 60_000);
      expect(worker.unreleased()).toEqual(unreleased);
      await bench.dispose();
    }
  });

  it('[WRK-RETRY-PACE] a release that a full disk refuses is tried ever more slowly, told now and then, and done soon when there is room', async () => {
    bench = await openBench(34);
    const warned: string[] = [];
    const logger: Logger = { ...silentLogger, warn: (event) => void warned.push(event), child: () => logger };
    let isFull = false;
    let tries = 0;
    let assign = (_assigned: readonly number[]): void => undefined;
    await bench.start({
      ...QUICK,
      logger,
      wrap: (log) => ({
        ...log,
        append: (to, records) => {
          if (!isFull || to.topic !== 'events') return log.append(to, records);
          if (records.some(({ headers }) => typeOf(headers) === EVENT_TYPE.released)) tries++;
          return Promise.reject(new LogError('APPEND_REFUSED', 'no space left', { reason: 'disk-full' }));
        },
        join: (options) => {
          assign = options.onChange;
          return log.join(options);
        },
      }),
    });
    await bench.open('k');
    isFull = true;
    assign([]);
    await bench.time.advance(60_000);
    tries = 0;
    warned.length = 0;
    await bench.time.advance(600_000);
    // Every 2 s, and a line every 30 s.
    expect(tries).toBeGreaterThan(290);
    expect(tries).toBeLessThan(310);
    const lines = warned.filter((event) => event === 'release failed; trying again').length;
    expect(lines).toBeGreaterThanOrEqual(18);
    expect(lines).toBeLessThanOrEqual(21);
    expect(ofType('released')).toEqual([]);
    isFull = false;
    await bench.time.advance(3000);
    expect(ofType('released')).toHaveLength(1);
  });

  it('[WRK-LEAVE] a partition that is taken away is given up in time, though the log answers no append', async () => {
    bench = await openBench(31);
    let isStuck = false;
    let assign = (_assigned: readonly number[]): void => undefined;
    const { host } = await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        append: (to, records) =>
          isStuck && to.topic === 'events' ? new Promise(() => undefined) : log.append(to, records),
        join: (options) => {
          assign = options.onChange;
          return log.join(options);
        },
      }),
    });
    await bench.open('k');
    isStuck = true;
    assign([]);
    await bench.time.advance(8000);
    expect(host.opened[0]?.isClosed).toBe(true);
  });

  it('[WRK-LEAVE] a partition whose release went wrong is released before others wait for ever', async () => {
    bench = await openBench(23);
    let assign = (_assigned: readonly number[]): void => undefined;
    let releases = 0;
    const first = await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        append: (to, records) =>
          records.some(({ headers }) => typeOf(headers) === EVENT_TYPE.released) && ++releases === 1
            ? Promise.reject(new LogError('APPEND_UNKNOWN', 'who knows'))
            : log.append(to, records),
        join: (options) => {
          assign = options.onChange;
          return log.join(options);
        },
      }),
    });
    assign([]);
    await bench.until(() => ofType('released').length === 1);
    expect([releases, first.worker.owned()]).toEqual([2, []]);
  });
});

describe('checkpoints', () => {
  it('[WRK-CHECKPOINT] come every few seconds when something happens, and at an eighth of retention when nothing does', async () => {
    bench = await openBench(24, { retentionMs: 80_000 });
    await bench.start({ config: { ...QUICK.config, checkpointMs: 1000 } });
    await bench.open('k');
    await bench.time.advance(1000);
    const before = ofType('checkpoint').length;
    for (let id = 1; id <= 5; id++) {
      await bench.call('k', id, 'effect');
      await bench.time.advance(1000);
    }
    expect(ofType('checkpoint').length - before).toBe(5);
    await bench.time.advance(2000);
    const idle = ofType('checkpoint').length;
    await bench.time.advance(60_000);
    const times = ofType('checkpoint')
      .slice(idle)
      .map(({ record }) => record.timestampMs);
    expect(times.length).toBeGreaterThanOrEqual(6);
    for (const [index, ms] of times.entries())
      if (index > 0) expect(ms - times[index - 1]!).toBeLessThanOrEqual(10_000);
  });

  it('[WRK-CHECKPOINT] come at once when the newest was evicted, though nothing happens', async () => {
    bench = await openBench(34);
    await bench.start({ config: { ...QUICK.config, checkpointMs: 1000 } });
    await bench.open('k');
    await bench.time.advance(20_000);
    const before = ofType('checkpoint').length;
    const { end } = await bench.log.bounds(EVENTS);
    bench.log.controls.evictBefore(EVENTS, end);
    await bench.time.advance(10_000);
    expect([before > 0, ofType('checkpoint').length]).toEqual([true, 1]);
  });

  it('[WRK-CHECKPOINT] are told in meta only after they were accepted', async () => {
    bench = await openBench(25);
    let isBlind = false;
    await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        read: (from, position, options) =>
          isBlind && from.topic === 'events' ? waits(options?.signal) : log.read(from, position, options),
      }),
    });
    await bench.open('k');
    const hints = (): number =>
      bench.records(META).filter(({ key }) => decodeText(key!).startsWith('checkpoint/')).length;
    await bench.time.advance(5000);
    isBlind = true;
    await bench.log.append(EVENTS, [makeRecord('stream.attached', 'k', null, { stream: 's', attachment: 'a' })]);
    await bench.call('k', 1, 'lookup');
    await bench.time.advance(10);
    const [told, written] = [hints(), ofType('checkpoint').length];
    await bench.time.advance(5000);
    expect(ofType('checkpoint').length).toBe(written + 1);
    expect(hints()).toBe(told);
  });

  it('[WRK-CHECKPOINT] one that was written after another had claimed is never told in meta', async () => {
    bench = await openBench(32);
    let isBlind = false;
    await bench.start({
      ...QUICK,
      wrap: (log) => ({
        ...log,
        read: async (from, position, options) => {
          while (isBlind && from.topic === 'events')
            await new Promise<void>((resolve) => bench.time.clock().setTimer(50, resolve));
          return log.read(from, position, options);
        },
      }),
    });
    await bench.open('k');
    await bench.time.advance(5000);
    isBlind = true;
    await bench.attach('k');
    await bench.log.append(EVENTS, [claim('rival', ofType('claimed')[0]!.offset)]);
    await bench.call('k', 1, 'lookup');
    await bench.time.advance(5000);
    const written = bench.records(EVENTS).filter(({ headers }) => typeOf(headers) === EVENT_TYPE.checkpoint).length;
    expect(written).toBe(ofType('checkpoint').length + 1);
    isBlind = false;
    await bench.until(() => ofType('claimed').length === 3);
    await bench.time.advance(5000);
    const accepted = ofType('checkpoint').map(({ offset }) => offset);
    for (const { key, value } of bench.records(META))
      if (decodeText(key!).startsWith('checkpoint/'))
        expect(accepted).toContain((JSON.parse(decodeText(value!)) as { offset: number }).offset);
  });

  it('[WRK-CHECKPOINT] list what is open, with whether it was started and anything was said', async () => {
    bench = await openBench(26);
    await bench.start({ config: { ...QUICK.config, maxRunningPerSession: 2 } });
    await bench.open('k');
    const a = await bench.call('k', 1, 'countdown', { count: 60, ms: 1000 });
    const b = await bench.call('k', 2, 'hang');
    const c = await bench.call('k', 3, 'effect');
    await bench.time.advance(5000);
    expect(readCheckpoint(ofType('checkpoint').at(-1)!.record)).toMatchObject({
      inbound: c + 1,
      open: [
        { at: a, attempt: 1, sent: true },
        { at: b, attempt: 1, sent: false },
        { at: c, attempt: 0, sent: false },
      ],
    });
  });

  it('[WRK-CHECKPOINT] fit into a record: beyond what they can list requests are refused', async () => {
    bench = await openBench(27, { maxRecordBytes: 2000 });
    await bench.start(QUICK);
    await bench.open('k');
    const offsets = [];
    for (let id = 1; id <= 60; id++) offsets.push(await bench.call('k', id, 'hang'));
    await bench.time.advance(5000);
    const refused = offsets.filter((at) => errorOf(bench.stream(`r${at}`).messages[0])?.code === 'CAPACITY');
    expect(refused.length).toBe(60 - Math.floor(2000 / 64));
    expect(readCheckpoint(ofType('checkpoint').at(-1)!.record)?.open).toHaveLength(Math.floor(2000 / 64));
  });

  it('[WRK-CHECKPOINT] one that is too large all the same stops nothing: the former one stays valid', async () => {
    bench = await openBench(28, { maxRecordBytes: 400 });
    const first = await bench.start({ config: { ...QUICK.config, checkpointMs: 1000 } });
    // `initialize` fits, and so does each end; the list of ends in flight does not.
    const before = ofType('checkpoint').length;
    for (let index = 0; index < 40; index++) await bench.end(`session-with-a-rather-long-key-${index}`);
    await bench.time.advance(3000);
    expect(ofType('checkpoint').length).toBeGreaterThanOrEqual(before);
    expect(first.worker.owned()).toEqual([0]);
  });
});

function claim(worker: string, predecessor: number | null): ReturnType<typeof makeRecord> {
  return makeRecord(EVENT_TYPE.claimed, null, '{}', {
    predecessor: predecessor === null ? 'none' : String(predecessor),
    worker,
    epoch: bench.epoch(),
  });
}

function waits(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    const stop = (): void => {
      reject(new LogError('ABORTED', 'aborted'));
    };
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted === true) stop();
  });
}
