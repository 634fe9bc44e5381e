import { LogError } from '@throughline/log';
import { afterEach, describe, expect, it } from 'vitest';
import type { SessionEventStores } from './event-store.ts';
import type { SessionEvents } from './session-events.ts';
import { memoryStores } from './testing/open-stores.ts';
import type { Stores } from './testing/open-stores.ts';
import { INITIALIZE, numbers, SDK_LINES, startSdk } from './testing/sdk-server.ts';
import type { SdkServer } from './testing/sdk-server.ts';

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** A log whose reads of `events` the test may hold, and whose appends take uneven time. */
interface Slow {
  readonly stores: Stores;
  hold(): void;
  let(): void;
  unevenMs: number;
}

function slowStores(): Slow {
  const stores = memoryStores();
  let gate: PromiseWithResolvers<void> | null = null;
  const slow: Slow = {
    stores: {
      ...stores,
      open: (options = {}) =>
        stores.open({
          ...options,
          log: {
            ...stores.log,
            get description() {
              return stores.log.description;
            },
            append: async (to, records) => {
              const appended = await stores.log.append(to, records);
              const last = appended.offsets.at(-1) ?? 0;
              if (slow.unevenMs > 0) await new Promise((resolve) => setTimeout(resolve, (last * 7) % slow.unevenMs));
              return appended;
            },
            read: async (from, position, more) => {
              const batch = await stores.log.read(from, position, more);
              if (from.topic === 'events') await gate?.promise;
              return batch;
            },
          },
        }),
    },
    unevenMs: 0,
    hold() {
      gate = Promise.withResolvers();
    },
    let() {
      gate?.resolve();
      gate = null;
    },
  };
  return slow;
}

interface Serving {
  readonly store: SessionEventStores;
  readonly session: SessionEvents;
  readonly server: SdkServer;
}

describe.each(SDK_LINES)('the transport of the SDK %s', (line) => {
  async function serve(stores: Stores): Promise<Serving> {
    const store = await stores.open();
    const session = await store.create();
    const server = await startSdk(line, session);
    cleanups.push(async () => {
      await server.close();
      await store.close();
    });
    await server.initialize();
    return { store, session, server };
  }

  async function restore(stores: Stores, sessionId: string, remembered = true): Promise<Serving> {
    const store = await stores.open();
    const session = (await store.find(sessionId))!;
    const server = await startSdk(line, session);
    cleanups.push(async () => {
      await server.close();
      await store.close();
    });
    if (remembered) await session.reinitialize(server.handle);
    return { store, session, server };
  }

  it('[EVS-SDK] a client that was cut off gets each message of its call once and in order, and the answer', async () => {
    const { server } = await serve(memoryStores());
    const stream = await server.call(1);
    for (const n of [1, 2, 3]) await server.notify(n, 1);
    await stream.until(4);
    await stream.cancel();
    for (const n of [4, 5]) await server.notify(n, 1);
    const resumed = await server.listen(stream.events.at(-1)!.id);
    await server.notify(6, 1);
    await server.answer(1);
    await resumed.until(4);
    expect(numbers(stream)).toEqual([1, 2, 3]);
    expect(numbers(resumed)).toEqual([4, 5, 6, 'result']);
    // From the primer on, and once more: an id stays good.
    const again = await server.listen(stream.events[0]!.id);
    await again.until(7);
    expect(numbers(again)).toEqual([1, 2, 3, 4, 5, 6, 'result']);
    const ids = [...stream.events, ...resumed.events].map(({ id }) => id);
    expect(again.events.map(({ id }) => id)).toEqual(ids.slice(1));
    expect(server.errors).toEqual([]);
  });

  it('[EVS-HANDOVER] what is said while a slow replay runs comes after it, once, and in order', async () => {
    const slow = slowStores();
    const { server } = await serve(slow.stores);
    const stream = await server.call(1);
    await server.notify(1, 1);
    await stream.until(2);
    await stream.cancel();
    await server.notify(2, 1);
    slow.hold();
    const resuming = server.listen(stream.events.at(-1)!.id);
    const said = [3, 4, 5, 6, 7, 8, 9].map((n) => server.notify(n, 1));
    await new Promise((resolve) => setTimeout(resolve, 30));
    slow.let();
    const resumed = await resuming;
    await Promise.all(said);
    await server.notify(10, 1);
    await resumed.until(9);
    expect(numbers(resumed)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it('[EVS-HANDOVER] over many resumes at random moments nothing is lost or repeated, on both kinds of streams', async () => {
    const slow = slowStores();
    slow.unevenMs = 4;
    const { server } = await serve(slow.stores);
    const opened = await server.call(1);
    const first = await server.listen();
    await server.notify(0);
    await server.notify(0, 1);
    await Promise.all([opened.until(2), first.until(1)]);
    const follow = async (stream: typeof first, until: number): Promise<(number | 'result')[]> => {
      const got: (number | 'result')[] = [];
      let current = stream;
      let last = '';
      for (let round = 0; ; round++) {
        last = current.events.at(-1)?.id ?? last;
        got.push(...numbers(current));
        if (got.at(-1) === until) return got;
        await current.cancel();
        current = await server.listen(last);
        await Promise.race([current.until(1 + (round % 7)), new Promise((resolve) => setTimeout(resolve, 5))]);
      }
    };
    const speak = async (): Promise<void> => {
      for (let n = 1; n <= 120; n++) {
        void server.notify(n);
        void server.notify(n, 1);
        if (n % 5 === 0) await new Promise((resolve) => setTimeout(resolve, n % 3));
      }
    };
    const [standalone, call] = await Promise.all([follow(first, 120), follow(opened, 120), speak()]);
    const all = Array.from({ length: 121 }, (_, n) => n);
    expect(standalone).toEqual(all);
    expect(call).toEqual(all);
  });

  it('[EVS-ORDER] messages that are said at once stand on the wire in the order of their ids, however uneven the log is', async () => {
    const slow = slowStores();
    slow.unevenMs = 6;
    const { server } = await serve(slow.stores);
    const stream = await server.call(1);
    await Promise.all(Array.from({ length: 40 }, (_, n) => server.notify(n, 1)));
    await stream.until(41);
    expect(numbers(stream)).toEqual(Array.from({ length: 40 }, (_, n) => n));
    const offsets = stream.events.map(({ id }) => Number(id.split('.')[2]));
    expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
  });

  it('[EVS-SDK] a resume takes the stream over from a connection that hangs', async () => {
    const { server } = await serve(memoryStores());
    const stream = await server.call(1);
    await server.notify(1, 1);
    await stream.until(2);
    const resumed = await server.listen(stream.events[0]!.id);
    expect(resumed.status).toBe(200);
    await stream.ended;
    await server.notify(2, 1);
    await resumed.until(2);
    expect(numbers(resumed)).toEqual([1, 2]);
  });

  it('[EVS-RESTORE] another process goes on with the session once it was given initialize', async () => {
    const stores = memoryStores();
    const { session, server } = await serve(stores);
    await session.remember(INITIALIZE);
    const first = await server.listen();
    await server.notify(1);
    await first.until(1);
    await first.cancel();
    for (const n of [2, 3]) await server.notify(n);
    const next = await restore(stores, session.sessionId);
    expect(next.session.isRemembered()).toBe(true);
    const resumed = await next.server.listen(first.events[0]!.id);
    await next.server.notify(4);
    await resumed.until(3);
    expect(numbers(resumed)).toEqual([2, 3, 4]);
  });

  it('[EVS-RESTORE] a session that nobody remembered, and a transport that refuses, are RESTORE_REFUSED', async () => {
    const stores = memoryStores();
    const { session } = await serve(stores);
    const next = await restore(stores, session.sessionId, false);
    await expect(next.session.reinitialize(next.server.handle)).rejects.toMatchObject({ code: 'RESTORE_REFUSED' });
    await expect(session.remember({ jsonrpc: '2.0', id: 1, method: 'ping' })).rejects.toThrow(TypeError);
    await session.remember({ jsonrpc: '2.0', id: 0, method: 'initialize', params: {} });
    const busy = (): Promise<Response> => Promise.resolve(new Response('no', { status: 503 }));
    await expect(session.reinitialize(busy)).rejects.toMatchObject({ code: 'RESTORE_REFUSED' });
  });

  // What the SDK's design cannot give. Each of these is told in docs/guides/event-store.md.

  it('[EVS-LIM-NODES] what another process says of a stream does not reach a client that has resumed here, until it resumes again', async () => {
    const stores = memoryStores();
    const { session, server } = await serve(stores);
    await session.remember(INITIALIZE);
    const stream = await server.call(1);
    await server.notify(1, 1);
    await stream.until(2);
    const { id: cursor } = stream.events.at(-1)!;
    const next = await restore(stores, session.sessionId);
    const resumed = await next.server.listen(cursor);
    expect(resumed.status).toBe(200);
    await server.notify(2, 1);
    await server.answer(1);
    await Promise.race([resumed.until(1), resumed.ended, new Promise((resolve) => setTimeout(resolve, 50))]);
    expect(numbers(resumed)).toEqual([]);
    const again = await next.server.listen(cursor);
    await again.until(2);
    expect(numbers(again)).toEqual([2, 'result']);
  });

  it('[EVS-LIM-OWNER] a call that ran in a process that is gone is answered by nobody', async () => {
    const stores = memoryStores();
    const { session, server } = await serve(stores);
    await session.remember(INITIALIZE);
    const stream = await server.call(1);
    await server.notify(1, 1);
    await stream.until(2);
    const next = await restore(stores, session.sessionId);
    const resumed = await next.server.listen(stream.events[0]!.id);
    await resumed.until(1);
    expect(numbers(resumed)).toEqual([1]);
    await expect(next.server.answer(1)).rejects.toThrow();
  });

  it('[EVS-LIM-RESTORE] a fresh transport refuses a session until it was given initialize', async () => {
    const stores = memoryStores();
    const { session, server } = await serve(stores);
    const stream = await server.call(1);
    await stream.until(1);
    const next = await restore(stores, session.sessionId, false);
    const refused = await next.server.listen(stream.events[0]!.id);
    expect(refused.status).toBe(400);
    expect(refused.body).toContain('not initialized');
  });

  it('[EVS-LIM-STATUS] the SDK answers every refused resume with the same 500; the reason is told to the server, and by judge', async () => {
    const { session, server } = await serve(memoryStores());
    const stream = await server.call(1);
    await stream.until(1);
    const beyond = stream.events[0]!.id.split('.').with(2, '900').join('.');
    for (const [id, reason] of [
      ['nonsense', 'cursor-malformed'],
      [beyond, 'beyond-end'],
    ] as const) {
      const refused = await server.listen(id);
      expect(refused.status).toBe(500);
      expect(refused.body).not.toContain(reason);
      expect(server.errors.at(-1)).toMatchObject({ name: 'ResumeRefused', reason });
      expect((await session.judge(id))?.reason).toBe(reason);
    }
  });

  it('[EVS-LIM-PRIMER] a standalone stream has no id before its first message: what is said after a cut before it is not delivered', async () => {
    const { server } = await serve(memoryStores());
    const stream = await server.listen();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(stream.events).toEqual([]);
    await stream.cancel();
    await server.notify(1);
    const again = await server.listen();
    await server.notify(2);
    await again.until(1);
    expect(numbers(again)).toEqual([2]);
  });

  it('[EVS-LIM-UNSAID] an event that the log does not take is an error of the server, and its client hears nothing of it', async () => {
    const stores = memoryStores();
    const { server } = await serve(stores);
    const stream = await server.call(1);
    await server.notify(1, 1);
    stores.memory.controls.failAppends('refused');
    await expect(server.answer(1)).rejects.toBeInstanceOf(LogError);
    stores.memory.controls.failAppends(null);
    await server.notify(2, 1);
    await stream.until(3);
    expect(numbers(stream)).toEqual([1, 2]);
  });
});
