import { readFileSync } from 'node:fs';
import { LogError, systemClock, systemRandom } from '@throughline/log';
import type { Log } from '@throughline/log';
import { createMemoryStore, openMemoryLog } from '@throughline/log/memory';
import type { MemoryStore, MemoryStoreOptions } from '@throughline/log/memory';
import { decodeText, makeSessionKey, readInboundRecord, signSessionId } from '@throughline/protocol';
import type { LogRecord } from '@throughline/protocol';
import { Meta, SessionDirectory } from '@throughline/tail';
import { afterEach, describe, expect, it } from 'vitest';
import { hasProducerCode, ProducerError } from './errors.ts';
import type { ProducerErrorCode } from './errors.ts';
import { openProducer, RETRY_WITHIN_MS } from './producer.ts';
import type { Producer, ProducerOptions } from './producer.ts';

const resources: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of resources.splice(0).reverse()) await close();
});

const NOTE = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } };
const note = (data: string) => ({ ...NOTE, params: { ...NOTE.params, data } });

interface Rig {
  readonly store: MemoryStore;
  readonly log: Log;
  readonly directory: SessionDirectory;
  readonly epoch: string;
  /** A session that `sessions` names, by its id. */
  begin(fields?: { readonly isRecorded?: boolean; readonly epoch?: string }): Promise<string>;
  end(sessionId: string): Promise<void>;
  producer(options?: Partial<ProducerOptions>): Promise<Producer>;
  /** What lies in `inbound`. */
  appended(partition?: number): readonly LogRecord[];
}

async function openRig(options: Partial<MemoryStoreOptions> = {}): Promise<Rig> {
  const store = createMemoryStore({ clock: systemClock, partitions: 2, ...options });
  const log = openMemoryLog(store, { clock: systemClock });
  const meta = new Meta({ log, clock: systemClock });
  const epoch = await meta.ensureEpoch(systemRandom);
  const directory = new SessionDirectory({
    log,
    clock: systemClock,
    partitions: [0, 1],
    maxLifeMs: 3600_000,
    keepRecords: true,
  });
  resources.push(async () => {
    await Promise.all([meta.close(), directory.close()]);
    await log.close();
  });
  const keyOf = (sessionId: string): readonly [number, string] => {
    const [, partition, , , key = ''] = sessionId.split('.');
    return [Number(partition), key];
  };
  return {
    store,
    log,
    directory,
    epoch,
    async begin({ isRecorded = true, epoch: of = epoch } = {}) {
      const key = makeSessionKey(systemRandom.bytes(16));
      const session = { epoch: of, partition: 1, from: 0, createdMs: Date.now(), key };
      if (isRecorded)
        await directory.put(1, key, {
          server: 'demo',
          principal: '',
          version: '2025-11-25',
          createdMs: session.createdMs,
          initialize: { jsonrpc: '2.0', id: 0, method: 'initialize' },
          initialized: true,
          logLevel: null,
          subscriptions: [],
        });
      return signSessionId(session, { principal: '', server: 'demo' }, new Uint8Array(32));
    },
    end: async (sessionId) => directory.end(...keyOf(sessionId), 'deleted'),
    async producer(more = {}) {
      const producer = await openProducer({ log, timeoutMs: 2000, ...more });
      resources.push(() => producer.close());
      return producer;
    },
    appended: (partition = 1) => {
      const held = store.partition({ topic: 'inbound', partition });
      return held.read(0, Number.MAX_SAFE_INTEGER).records;
    },
  };
}

const codeOf = async (work: Promise<unknown>): Promise<ProducerErrorCode | 'none'> =>
  work.then(
    () => 'none' as const,
    (error: unknown) => {
      if (error instanceof ProducerError) return error.code;
      throw error;
    },
  );

describe('a producer', () => {
  it('[PRD-APPEND] appends a notification to inbound of the session, with its name and the time up to which it counts', async () => {
    const rig = await openRig();
    const producer = await rig.producer();
    const session = await rig.begin();
    const before = Date.now();
    const { partition, offset } = await producer.append(session, note('é'), { idempotencyKey: 'job-7' });
    expect([partition, offset]).toEqual([1, 0]);
    const [record] = rig.appended();
    const { body, key } = readInboundRecord(record!) as Extract<ReturnType<typeof readInboundRecord>, { key: string }>;
    expect(key).toBe(session.split('.')[4]);
    expect(body).toMatchObject({ type: 'produced', server: 'demo', idempotencyKey: 'job-7' });
    const untilMs = body.type === 'produced' ? (body.untilMs ?? 0) : 0;
    expect(untilMs).toBeGreaterThanOrEqual(before + 50_000);
    expect(untilMs).toBeLessThanOrEqual(Date.now() + 50_000);
    expect(JSON.parse(decodeText(record!.value!))).toEqual(note('é'));
  });

  it.each([
    ['no object', 'hello', /object/u],
    ['no version', { method: 'notifications/message' }, /jsonrpc/u],
    ['a request', { jsonrpc: '2.0', id: 1, method: 'ping' }, /id/u],
    ['a response', { jsonrpc: '2.0', id: 1, result: {} }, /id/u],
    ['an unknown field', { ...NOTE, extra: 1 }, /extra/u],
    ['parameters that are a list', { ...NOTE, params: [] }, /params/u],
    ['a malformed _meta', { ...NOTE, params: { _meta: 1 } }, /_meta/u],
  ])('[PRD-NOTIFY] refuses %s by the field, and appends nothing', async (_, message, field) => {
    const rig = await openRig();
    const producer = await rig.producer();
    const session = await rig.begin();
    const refused: unknown = await producer
      .append(session, message, { idempotencyKey: 'a' })
      .catch((error: unknown) => error);
    expect(hasProducerCode(refused, 'INVALID_MESSAGE')).toBe(true);
    expect((refused as Error).message).toMatch(field);
    expect(rig.appended()).toEqual([]);
  });

  it('[PRD-KEY] refuses a name that no record may carry', async () => {
    const rig = await openRig();
    const producer = await rig.producer();
    const session = await rig.begin();
    for (const idempotencyKey of ['', 'a b', 'x'.repeat(129)])
      expect(await codeOf(producer.append(session, NOTE, { idempotencyKey }))).toBe('INVALID_KEY');
    expect(rig.appended()).toEqual([]);
  });

  it('[PRD-SESSION] refuses sessions that are none, of another log or epoch, unknown, or ended', async () => {
    const rig = await openRig();
    const producer = await rig.producer();
    const tell = (id: string): Promise<string> => codeOf(producer.append(id, NOTE, { idempotencyKey: 'a' }));
    expect(await tell('nonsense')).toBe('SESSION_UNKNOWN');
    expect(await tell(await rig.begin({ isRecorded: false }))).toBe('SESSION_UNKNOWN');
    expect(await tell(await rig.begin({ epoch: 'aaaaaaaaaa' }))).toBe('SESSION_UNKNOWN');
    const session = await rig.begin();
    expect(await tell(session.replace('.1.', '.9.'))).toBe('SESSION_UNKNOWN');
    expect(await tell(session)).toBe('none');
    await rig.end(session);
    await expect.poll(() => tell(session)).toBe('SESSION_ENDED');
    const { length } = rig.appended();
    expect(await tell(session)).toBe('SESSION_ENDED');
    expect(rig.appended()).toHaveLength(length);
  });

  it('[PRD-SESSION] knows a session that began a moment ago', async () => {
    const rig = await openRig();
    const producer = await rig.producer();
    for (let n = 0; n < 5; n++) {
      const session = await rig.begin();
      expect(await codeOf(producer.append(session, NOTE, { idempotencyKey: 'a' }))).toBe('none');
    }
  });

  it('[PRD-MANY] says it to many sessions: each has its own outcome, and each is told once', async () => {
    const rig = await openRig();
    const producer = await rig.producer();
    const sessions = await Promise.all(Array.from({ length: 150 }, () => rig.begin()));
    await rig.end(sessions[7]!);
    const outcomes = await producer.appendMany([...sessions, ...sessions, 'nonsense'], NOTE, { idempotencyKey: 'all' });
    expect(outcomes.size).toBe(151);
    expect(outcomes.get(sessions[7]!)).toMatchObject({ code: 'SESSION_ENDED' });
    expect(outcomes.get('nonsense')).toMatchObject({ code: 'SESSION_UNKNOWN' });
    expect([...outcomes.values()].filter((outcome) => !(outcome instanceof ProducerError))).toHaveLength(149);
    expect(rig.appended()).toHaveLength(149);
  });
});

describe('a producer whose log fails', () => {
  it.each(['unknown-stored', 'unknown-lost', 'refused'] as const)(
    '[PRD-RETRY] tries an append that ended %s again under the same name, until the log takes it',
    async (fault) => {
      const rig = await openRig();
      const producer = await rig.producer({ timeoutMs: 10_000 });
      const session = await rig.begin();
      rig.store.controls.failAppends(fault);
      const appending = producer.append(session, NOTE, { idempotencyKey: 'a' });
      await new Promise((resolve) => setTimeout(resolve, 250));
      rig.store.controls.failAppends(null);
      const { offset } = await appending;
      const names = rig.appended().map((record) => {
        const read = readInboundRecord(record);
        return 'body' in read && read.body.type === 'produced' ? read.body.idempotencyKey : null;
      });
      expect(new Set(names)).toEqual(new Set(['a']));
      expect(names.length).toBe(offset + 1);
    },
  );

  it('[PRD-RETRY] gives up at its timeout: UNKNOWN_OUTCOME if a try may be in the log, UNAVAILABLE if none is', async () => {
    const rig = await openRig();
    const producer = await rig.producer({ timeoutMs: 400 });
    const session = await rig.begin();
    rig.store.controls.failAppends('unknown-lost');
    expect(await codeOf(producer.append(session, NOTE, { idempotencyKey: 'a' }))).toBe('UNKNOWN_OUTCOME');
    rig.store.controls.failAppends('refused');
    expect(await codeOf(producer.append(session, NOTE, { idempotencyKey: 'b' }))).toBe('UNAVAILABLE');
    rig.store.controls.failAppends(null);
  });

  it('[PRD-RETRY] a log that never answers ends an append as UNKNOWN_OUTCOME in time', async () => {
    const rig = await openRig();
    const silent: Log = {
      ...rig.log,
      get description() {
        return rig.log.description;
      },
      append: () => new Promise(() => undefined),
    };
    const producer = await rig.producer({ log: silent, timeoutMs: 200 });
    const startMs = performance.now();
    expect(await codeOf(producer.append(await rig.begin(), NOTE, { idempotencyKey: 'a' }))).toBe('UNKNOWN_OUTCOME');
    expect(performance.now() - startMs).toBeLessThan(5000);
  });

  it('[PRD-LATE] does not append what was tried first too long ago, and says so of what the log took too late', async () => {
    const rig = await openRig();
    const producer = await rig.producer();
    const session = await rig.begin();
    const firstTriedMs = Date.now() - RETRY_WITHIN_MS - 1;
    const tell = (at: number): Promise<string> =>
      codeOf(producer.append(session, NOTE, { idempotencyKey: 'a', firstTriedMs: at }));
    expect(await tell(firstTriedMs)).toBe('TOO_LATE');
    expect(rig.appended()).toEqual([]);
    expect(await tell(Date.now() - 30_000)).toBe('none');
    // By the clock of the log it is later.
    const ahead = await openRig({ clock: { ...systemClock, wallMs: () => Date.now() + 60_000 } });
    const other = await ahead.producer();
    expect(await codeOf(other.append(await ahead.begin(), NOTE, { idempotencyKey: 'a' }))).toBe('TOO_LATE');
    await expect(producer.append(session, NOTE, { idempotencyKey: 'a', firstTriedMs: 0.5 })).rejects.toThrow(TypeError);
  });

  it('[PRD-RETRY] what no later try would mend is not tried again', async () => {
    const rig = await openRig({ maxRecordBytes: 1024 });
    const producer = await rig.producer({ timeoutMs: 30_000 });
    const session = await rig.begin();
    expect(await codeOf(producer.append(session, note('x'.repeat(2000)), { idempotencyKey: 'a' }))).toBe('TOO_LARGE');
    let tries = 0;
    const forbidden: Log = {
      ...rig.log,
      get description() {
        return rig.log.description;
      },
      append: () => {
        tries++;
        return Promise.reject(new LogError('APPEND_REFUSED', 'no right', { reason: 'not-authorized' }));
      },
    };
    const other = await rig.producer({ log: forbidden, timeoutMs: 30_000 });
    expect(await codeOf(other.append(session, NOTE, { idempotencyKey: 'a' }))).toBe('UNAVAILABLE');
    expect(tries).toBe(1);
  });
});

describe('the buffer of a producer', () => {
  /** A log that keeps appends until it is let. */
  function slowLog(log: Log): { readonly log: Log; readonly let: () => void } {
    const gate = Promise.withResolvers<null>();
    const slow: Log = {
      ...log,
      get description() {
        return log.description;
      },
      append: async (...args) => {
        await gate.promise;
        return await log.append(...args);
      },
    };
    return { log: slow, let: () => gate.resolve(null) };
  }

  it('[PRD-BOUND] bytes under way and calls that wait are bounded; beyond, append waits or refuses as asked', async () => {
    const rig = await openRig();
    const slow = slowLog(rig.log);
    const producer = await rig.producer({ log: slow.log, maxBytes: 400, maxWaiting: 2, timeoutMs: 10_000 });
    const session = await rig.begin();
    const append = (name: string, whenFull: 'wait' | 'refuse' = 'wait'): Promise<string> =>
      codeOf(producer.append(session, note('x'.repeat(150)), { idempotencyKey: name, whenFull }));
    const first = append('1');
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await append('2', 'refuse')).toBe('BUFFER_FULL');
    const waiting = [append('3'), append('4')];
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await append('5')).toBe('BUFFER_FULL');
    slow.let();
    expect(await Promise.all([first, ...waiting])).toEqual(['none', 'none', 'none']);
    expect(rig.appended()).toHaveLength(3);
  });

  it('[PRD-BOUND] who waits for room gives up at its timeout, and its room is not lost', async () => {
    const rig = await openRig();
    const slow = slowLog(rig.log);
    const producer = await rig.producer({ log: slow.log, maxBytes: 1, timeoutMs: 300 });
    const session = await rig.begin();
    const outcomes = ['1', '2', '3'].map((idempotencyKey) =>
      codeOf(producer.append(session, NOTE, { idempotencyKey })),
    );
    expect((await Promise.all(outcomes)).toSorted()).toEqual(['BUFFER_FULL', 'BUFFER_FULL', 'UNKNOWN_OUTCOME']);
    slow.let();
    expect(await codeOf(producer.append(session, NOTE, { idempotencyKey: '4' }))).toBe('none');
  });

  it('[PRD-CLOSE] takes nothing after close, which waits for what is under way', async () => {
    const rig = await openRig();
    const slow = slowLog(rig.log);
    const producer = await rig.producer({ log: slow.log });
    const session = await rig.begin();
    const appending = codeOf(producer.append(session, NOTE, { idempotencyKey: 'a' }));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const closing = producer.close();
    expect(await codeOf(producer.append(session, NOTE, { idempotencyKey: 'b' }))).toBe('CLOSED');
    slow.let();
    await closing;
    expect(await appending).toBe('none');
  });
});

describe('the options of a producer', () => {
  it.each([{ maxBytes: 0 }, { maxWaiting: 1.5 }, { timeoutMs: 40_001 }, { maxLifeMs: -1 }])(
    '[PRD-OPTIONS] %j are refused by their name',
    async (wrong) => {
      const { log } = await openRig();
      await expect(openProducer({ log, ...wrong })).rejects.toThrow(new RegExp(Object.keys(wrong).join(), 'u'));
    },
  );
});

describe('the codes of a producer', () => {
  const CODES = {
    INVALID_MESSAGE: true,
    INVALID_KEY: true,
    TOO_LARGE: true,
    SESSION_UNKNOWN: true,
    SESSION_ENDED: true,
    TOO_LATE: true,
    CLOSED: true,
    BUFFER_FULL: true,
    UNAVAILABLE: true,
    UNKNOWN_OUTCOME: true,
  } as const satisfies Record<ProducerErrorCode, true>;

  it('[PRD-CODES] are these, and the guide names each', () => {
    const guide = readFileSync(new URL('../../../docs/guides/producer.md', import.meta.url), 'utf8');
    const named = [...guide.matchAll(/^\| `([A-Z_]+)` /gmu)].map(([, code]) => code);
    expect(named).toEqual(Object.keys(CODES));
  });
});
