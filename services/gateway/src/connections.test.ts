import { createVirtualTime } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { Connections } from './connections.ts';
import { TakeoverLimit } from './takeover-limit.ts';

const OPEN = new AbortController().signal;

describe('connections', () => {
  it('[GW-LIMIT] a place is given back once, however often it is said', () => {
    const time = createVirtualTime({ seed: 1 });
    const connections = new Connections({
      clock: time.clock(),
      random: time.random,
      limit: 2,
      onCount: () => undefined,
    });
    const [a, b] = [connections.reserve(), connections.reserve()];
    expect(connections.reserve()).toBeNull();
    a?.();
    a?.();
    expect(connections.reserve()).not.toBeNull();
    expect(connections.reserve()).toBeNull();
    b?.();
    expect(connections.reserve()).not.toBeNull();
  });

  it('[GW-LIMIT] the count that is told is the number that are open', () => {
    const time = createVirtualTime({ seed: 1 });
    const counts: number[] = [];
    const connections = new Connections({
      clock: time.clock(),
      random: time.random,
      limit: 2,
      onCount: (count) => counts.push(count),
    });
    const remove = connections.add({ closeForDrain: () => undefined });
    connections.add({ closeForDrain: () => undefined })();
    remove();
    remove();
    expect(counts).toEqual([1, 2, 1, 0]);
  });

  it('[GW-DRAIN] with no time to drain every connection is closed at once', async () => {
    const time = createVirtualTime({ seed: 1 });
    const connections = new Connections({
      clock: time.clock(),
      random: time.random,
      limit: 9,
      onCount: () => undefined,
    });
    const leave = connections.enter();
    const closed: string[] = [];
    connections.add({
      closeForDrain: (when) => {
        closed.push(when);
        leave();
      },
    });
    await time.run(connections.drain(0));
    expect(closed).toContain('now');
    expect(time.nowMs()).toBe(0);
  });
});

describe('takeover limit', () => {
  it('[GW-TAKEOVER] three within 10 s are free, then each waits a second; a stream has its own count', async () => {
    const time = createVirtualTime({ seed: 1 });
    const limit = new TakeoverLimit(time.clock());
    const admitted: number[] = [];
    const admit = (stream: string) => limit.admit(stream, OPEN).then(() => admitted.push(time.nowMs()));
    for (let run = 0; run < 3; run++) void admit('a');
    await time.settle();
    expect(admitted).toEqual([0, 0, 0]);
    void admit('a');
    void admit('b');
    await time.settle();
    expect(admitted).toEqual([0, 0, 0, 0]);
    await time.advance(1000);
    expect(admitted).toEqual([0, 0, 0, 0, 1000]);
    await time.advance(9001);
    void admit('a');
    await time.settle();
    expect(admitted.at(-1)).toBe(10_001);
  });

  it('[GW-TAKEOVER] who goes while it waits waits no longer', async () => {
    const time = createVirtualTime({ seed: 1 });
    const limit = new TakeoverLimit(time.clock());
    const gone = new AbortController();
    for (let run = 0; run < 3; run++) await limit.admit('a', OPEN);
    const waiting = limit.admit('a', gone.signal);
    gone.abort();
    await time.run(waiting);
    expect([time.nowMs(), time.pending()]).toEqual([0, 0]);
  });

  it('[GW-TAKEOVER] a hundred thousand that come at once for one stream cost no more each than a few', async () => {
    const time = createVirtualTime({ seed: 1 });
    const limit = new TakeoverLimit(time.clock());
    const gone = new AbortController();
    gone.abort();
    for (let run = 0; run < 100_000; run++) void limit.admit('a', gone.signal);
    await time.settle();
    expect(time.pending()).toBe(0);
  }, 5000);
});
