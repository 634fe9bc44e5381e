import { createMemoryStore, openMemoryLog } from '@throughline/log/memory';
import { LogError } from '@throughline/log';
import { encodeText, makeRecord, sessionEndKey } from '@throughline/protocol';
import type { SessionRecord } from '@throughline/protocol';
import { createVirtualTime } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { SessionDirectory } from './session-directory.ts';
import type { SessionDirectoryOptions } from './session-directory.ts';

const SESSIONS = { topic: 'sessions', partition: 0 } as const;
const LIFE = 60_000;

function createWorld() {
  const time = createVirtualTime({ seed: 1 });
  const store = createMemoryStore({ clock: time.clock(), partitions: 2, clusterId: 'here' });
  const open = (options: Partial<SessionDirectoryOptions> = {}) => {
    const clock = time.clock();
    const log = openMemoryLog(store, { clock });
    return new SessionDirectory({ log, clock, partitions: [0, 1], maxLifeMs: LIFE, keepRecords: true, ...options });
  };
  const log = openMemoryLog(store, { clock: time.clock() });
  const record = (change: Partial<SessionRecord> = {}): SessionRecord => ({
    server: 'demo',
    principal: 'p',
    version: '2025-11-25',
    createdMs: time.clock().wallMs(),
    initialize: { jsonrpc: '2.0', id: 0, method: 'initialize', params: { a: 1 } },
    initialized: true,
    logLevel: null,
    subscriptions: ['x:y'],
    ...change,
  });
  return { time, store, open, log, record };
}

describe('session directory', () => {
  it('[TAIL-SESSIONS] a record and an end are known at once to the process that wrote them, and to others by the log', async () => {
    const { time, open, record } = createWorld();
    const [writer, other] = [open(), open()];
    const writing = writer.put(0, 'k', record());
    await writing;
    expect(writer.get(0, 'k')?.record?.subscriptions).toEqual(['x:y']);
    expect(writer.living(0).map(([key]) => key)).toEqual(['k']);
    await time.run(other.sync());
    expect(other.get(0, 'k')?.record).toEqual(writer.get(0, 'k')?.record);
    await writer.end(0, 'k', 'deleted');
    expect([writer.hasEnded(0, 'k'), writer.living(0)]).toEqual([true, []]);
    await time.run(other.syncPartition(0));
    expect(other.get(0, 'k')?.end?.reason).toBe('deleted');
    expect([other.hasEnded(0, 'k'), other.hasEnded(1, 'k'), other.hasEnded(0, 'z')]).toEqual([true, false, false]);
    await time.run(Promise.all([writer.close(), other.close()]));
  });

  it('[TAIL-SESSIONS] what cannot be read hides the record of a session until another is there, ends nothing, and makes no session', async () => {
    const { time, open, log, record } = createWorld();
    const directory = open();
    await directory.put(0, 'k', record());
    const poison = (key: string) => ({ key: encodeText(key), value: encodeText('nonsense'), headers: [] });
    await log.append(SESSIONS, [poison('k'), poison('z')]);
    await time.run(directory.sync());
    expect([directory.get(0, 'k'), directory.get(0, 'z')]).toMatchObject([{ record: null, end: null }, undefined]);
    expect([directory.hasEnded(0, 'k'), directory.living(0)]).toEqual([false, []]);
    await directory.put(0, 'k', record());
    expect(directory.living(0).map(([key]) => key)).toEqual(['k']);
    // An end is one whatever stands in it.
    await log.append(SESSIONS, [poison(sessionEndKey('k'))]);
    await time.run(directory.sync());
    expect(directory.hasEnded(0, 'k')).toBe(true);
    await time.run(directory.close());
  });

  it('[TAIL-ENDED] an end is never overwritten by a later record of the session, nor by a later end, nor by compaction', async () => {
    const { time, store, open, log, record } = createWorld();
    const [zombie, owner] = [open(), open()];
    await zombie.put(0, 'k', record());
    await owner.end(0, 'k', 'idle');
    // The former owner has not heard of it.
    await zombie.put(0, 'k', record({ logLevel: 'debug' }));
    await log.append(SESSIONS, [
      makeRecord('session.end', sessionEndKey('k'), JSON.stringify({ reason: 'expired', atMs: 1 }), {}),
    ]);
    await time.run(Promise.all([zombie.sync(), owner.sync()]));
    for (const directory of [zombie, owner]) expect(directory.living(0)).toEqual([]);
    expect(owner.get(0, 'k')).toMatchObject({ record: { logLevel: 'debug' }, end: { reason: 'idle' } });
    store.controls.compact('sessions');
    const late = open();
    await time.run(late.sync());
    expect(late.hasEnded(0, 'k')).toBe(true);
    expect(late.living(0)).toEqual([]);
    await time.run(Promise.all([zombie, owner, late].map((directory) => directory.close())));
  });

  it('[TAIL-ENDED] the end of a session whose record is not known is an end as well', async () => {
    const { time, open } = createWorld();
    const [one, two] = [open(), open()];
    await one.end(1, 'k', 'resumption-rejected');
    await time.run(two.sync());
    expect(two.get(1, 'k')).toMatchObject({ record: null, end: { reason: 'resumption-rejected' } });
    await time.run(Promise.all([one.close(), two.close()]));
  });

  it('[TAIL-ENDED] a session known to have ended is not ended again', async () => {
    const { time, open, log } = createWorld();
    const directory = open();
    await directory.end(0, 'k', 'idle');
    await directory.end(0, 'k', 'deleted');
    expect((await log.bounds(SESSIONS)).end).toBe(1);
    expect(directory.get(0, 'k')?.end?.reason).toBe('idle');
    await time.run(directory.close());
  });

  it('[TAIL-SESSIONS] what the log did not take is not shown', async () => {
    const { time, store, open, record } = createWorld();
    const directory = open();
    store.controls.failAppends('refused');
    await expect(directory.put(0, 'k', record())).rejects.toBeInstanceOf(LogError);
    await expect(directory.end(0, 'k', 'idle')).rejects.toBeInstanceOf(LogError);
    expect(directory.get(0, 'k')).toBeUndefined();
    await time.run(directory.close());
  });

  it('[TAIL-SESSIONS] the newest record in the log wins, though an older one is told of later', async () => {
    const { time, open, log, record } = createWorld();
    const directory = open({
      log: {
        ...log,
        async append(to, records) {
          const appended = await log.append(to, records);
          // The ack comes late: by then the view has read it, and what another process wrote after it.
          await new Promise<void>((resolve) => void time.clock().setTimer(50, resolve));
          return appended;
        },
      },
    });
    const writing = directory.put(0, 'k', record({ logLevel: 'old' }));
    await log.append(SESSIONS, [makeRecord('session', 'k', JSON.stringify(record({ logLevel: 'new' })), {})]);
    await time.run(writing);
    expect(directory.get(0, 'k')?.record?.logLevel).toBe('new');
    await time.run(directory.close());
  });

  it('[TAIL-SESSIONS] tombstones, and records that can not be read, leave nothing behind', async () => {
    const { time, open, log, record } = createWorld();
    const directory = open();
    await directory.put(0, 'never ended', record());
    await directory.put(0, 'ended', record());
    await directory.end(0, 'ended', 'expired');
    const tomb = (key: string) => makeRecord('session', key, null, {});
    await log.append(SESSIONS, [
      tomb('never ended'),
      tomb('ended'),
      makeRecord('session', 'broken', '{"no":"session"}', {}),
    ]);
    await time.run(directory.sync());
    expect(directory.get(0, 'never ended')).toBeUndefined();
    expect(directory.get(0, 'broken')).toBeUndefined();
    expect(directory.get(0, 'ended')).toMatchObject({ record: null, end: { reason: 'expired' } });
    await log.append(SESSIONS, [tomb(sessionEndKey('ended'))]);
    await time.run(directory.sync());
    expect(directory.get(0, 'ended')).toBeUndefined();
    await time.run(directory.close());
  });

  it('[TAIL-SWEEP] ended sessions are forgotten one maximum life after their end, living ones only where records are not kept', async () => {
    const { time, open, record } = createWorld();
    const [worker, gateway] = [open(), open({ keepRecords: false })];
    await worker.put(0, 'living', record());
    await worker.put(0, 'ended', record());
    await worker.end(0, 'ended', 'idle');
    await time.advance(LIFE);
    await worker.put(0, 'young', record());
    await time.run(gateway.sync());
    const known = (directory: SessionDirectory) =>
      ['living', 'ended', 'young'].filter((key) => directory.get(0, key) !== undefined);
    const sweep = (): void => {
      worker.sweep();
      gateway.sweep();
    };
    sweep();
    expect([known(worker), known(gateway)]).toEqual([
      ['living', 'ended', 'young'],
      ['living', 'ended', 'young'],
    ]);
    await time.advance(1);
    sweep();
    expect([known(worker), known(gateway)]).toEqual([['living', 'young'], ['young']]);
    await time.run(Promise.all([worker.close(), gateway.close()]));
  });

  it('[TAIL-SESSIONS] a gateway keeps the revision and nothing personal', async () => {
    const { time, open, record } = createWorld();
    const gateway = open({ keepRecords: false });
    await gateway.put(0, 'k', record());
    await time.run(gateway.sync());
    expect(gateway.get(0, 'k')?.record).toMatchObject({ version: '2025-11-25', principal: '', subscriptions: [] });
    expect(gateway.get(0, 'k')?.record?.initialize.params).toBeUndefined();
    await time.run(gateway.close());
  });
});
