import { LogError } from '@throughline/log';
import { requestStream } from '@throughline/protocol';
import { claimed, sent } from '@throughline/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { PartitionReader } from './partition-reader.ts';
import type { PartitionReaderOptions } from './partition-reader.ts';
import { createRig, EPOCH, EVENTS, hintAt, OPEN, spyReads } from './testing/log-rig.ts';
import type { ReadCall, Rig } from './testing/log-rig.ts';

const message = (owner: number | null, text = '{}') => sent('k', requestStream(1), text, { owner });
const readers: PartitionReader[] = [];

function start(rig: Rig, options: Partial<PartitionReaderOptions> = {}) {
  const seen: string[] = [];
  const errors: unknown[] = [];
  const reader = new PartitionReader({
    log: rig.log,
    clock: rig.clock,
    partition: 0,
    epoch: EPOCH,
    hint: () => null,
    onEvent: ({ offset, body }, verdict) => {
      seen.push(`${offset} ${body.type} ${verdict}`);
    },
    onUnreadable: ({ offset }) => {
      seen.push(`${offset} unreadable`);
    },
    onGap: (gap) => {
      seen.push(`gap to ${gap}`);
    },
    onError: (error) => {
      errors.push(error);
    },
    ...options,
  });
  readers.push(reader);
  return { reader, seen, errors };
}

afterEach(async () => {
  await Promise.all(readers.splice(0).map((reader) => reader.stop()));
});

describe('partition reader', () => {
  it('[TAIL-ORDER] it hands over every record once, in log order, with its verdict, as the log grows', async () => {
    const rig = createRig();
    await rig.append(claimed('a', EPOCH, null), message(0));
    const { seen, reader } = start(rig);
    await rig.time.settle();
    await rig.append(claimed('b', EPOCH, 0), message(0), { key: null, value: null, headers: [] }, message(2));
    await rig.time.settle();
    expect(seen).toEqual([
      '0 claimed accepted',
      '1 message accepted',
      '2 claimed accepted',
      '3 message fenced',
      '4 unreadable',
      '5 message accepted',
    ]);
    expect([reader.position(), reader.last()?.offset, reader.claims().list()]).toEqual([6, 5, [0, 2]]);
    expect(reader.bounds()).toEqual({ start: 0, end: 6 });
  });

  it('[TAIL-EPOCH-HEARD] nothing behind a claim of another epoch is handed over before that is clear; nothing at all if its own is over', async () => {
    for (const isStillInForce of [true, false]) {
      const rig = createRig();
      await rig.append(claimed('a', EPOCH, null), claimed('b', 'epochbbbbb', null), message(0));
      const asked: string[] = [];
      let answer = (): void => undefined;
      const { seen, reader } = start(rig, {
        isStillInForce: (epoch) =>
          new Promise((resolve) => {
            asked.push(epoch);
            answer = () => {
              resolve(isStillInForce);
            };
          }),
      });
      await rig.time.settle();
      expect([seen, asked, reader.position()]).toEqual([['0 claimed accepted'], ['epochbbbbb'], 1]);
      answer();
      await rig.append(message(0));
      await rig.time.settle();
      const rest = ['1 claimed fenced', '2 message accepted', '3 message accepted'];
      expect(seen).toEqual(['0 claimed accepted', ...(isStillInForce ? rest : [])]);
      await reader.stop();
    }
  });

  it('[TAIL-CLAIM-EVICTED] a claim that meta never knew of, and that retention has taken, does not fence its successors for those who had read it', async () => {
    for (const [known, verdict] of [
      [[0], 'accepted'],
      [[0, 2], 'fenced'],
    ] as const) {
      const rig = createRig();
      await rig.append(claimed('a', EPOCH, null), message(0), claimed('b', EPOCH, 0), message(2));
      const { seen, reader } = start(rig, { hint: () => hintAt(0, known) });
      await rig.time.settle();
      rig.log.controls.evictBefore(EVENTS, 3);
      await rig.append(message(null));
      await rig.time.settle();
      seen.length = 0;
      await rig.append(claimed('c', EPOCH, 0), message(5));
      await rig.time.settle();
      expect(seen).toEqual([`5 claimed ${verdict}`, `6 message ${verdict}`]);
      expect(reader.claims().owner()?.claim).toBe(verdict === 'accepted' ? 5 : 2);
    }
  });

  it('[TAIL-CLAIM-EVICTED] nor does the first claim of all', async () => {
    const rig = createRig();
    await rig.append(claimed('a', EPOCH, null), message(0));
    const { seen } = start(rig);
    await rig.time.settle();
    rig.log.controls.evictBefore(EVENTS, 1);
    await rig.append(message(null));
    await rig.time.settle();
    await rig.append(claimed('b', EPOCH, null), message(3));
    await rig.time.settle();
    expect(seen.slice(-2)).toEqual(['3 claimed accepted', '4 message accepted']);
  });

  it('[TAIL-CLAIM-EVICTED] as long as the claim is held, it does', async () => {
    const rig = createRig();
    await rig.append(claimed('a', EPOCH, null), message(0), claimed('b', EPOCH, 0), message(2));
    const { seen } = start(rig, { hint: () => hintAt(0, [0]) });
    await rig.append(claimed('c', EPOCH, 0));
    await rig.time.settle();
    expect(seen.at(-1)).toBe('4 claimed fenced');
  });

  it('[TAIL-ORDER] while a record is handed over, the position is behind it and not behind the next', async () => {
    const rig = createRig();
    await rig.append(message(null), message(null), message(null));
    const positions: number[] = [];
    const { reader } = start(rig, {
      onEvent: () => {
        positions.push(reader.position());
      },
    });
    await rig.time.settle();
    expect(positions).toEqual([1, 2, 3]);
  });

  it('[TAIL-ORDER] it goes on where the log says, across offsets that no record has, and those who wait for them are told', async () => {
    const rig = createRig();
    await rig.append(message(null), message(null), message(null), message(null));
    // Offsets 2 and 3 are given to no record, as transaction markers do it; the first two come one by one.
    const log = {
      ...rig.log,
      async read(...args: Parameters<typeof rig.log.read>) {
        if (args[1] >= 4) return rig.log.read(...args);
        const batch = await rig.log.read(...args);
        const records = batch.records.filter(({ offset }) => offset === args[1] && offset < 2);
        return { ...batch, records, next: records.length > 0 ? args[1] + 1 : 4 };
      },
    };
    const { seen, reader } = start(rig, { log });
    expect(await rig.finish(reader.reached(4, OPEN))).toBe(true);
    expect(seen).toEqual(['0 message accepted', '1 message accepted']);
    expect([reader.position(), reader.last()?.offset]).toEqual([4, 1]);
  });

  it('[TAIL-HINT] it begins at the newest checkpoint with the claims told there', async () => {
    const rig = createRig();
    await rig.append(claimed('a', EPOCH, null), message(0), claimed('b', EPOCH, 0), message(2), message(0));
    const { seen, reader } = start(rig, { hint: () => hintAt(3, [0, 2], 'b') });
    await rig.time.settle();
    expect(seen).toEqual(['3 message accepted', '4 message fenced']);
    expect(reader.claims().owner()).toEqual({ claim: 2, worker: 'b', released: false });
  });

  it('[TAIL-RETRY] a read that fails is told and tried again from the same place', async () => {
    const rig = createRig();
    await rig.append(message(null));
    const calls: ReadCall[] = [];
    const log = spyReads(rig.log, calls, () => {
      if (calls.length <= 2) throw new LogError('LOG_UNAVAILABLE', 'not now');
    });
    const { seen, errors } = start(rig, { log });
    await rig.time.advance(150);
    expect(seen).toEqual([]);
    expect(errors).toHaveLength(2);
    await rig.time.advance(100);
    expect(seen).toEqual(['0 message accepted']);
    expect(calls.slice(0, 3).map(({ position }) => position)).toEqual([0, 0, 0]);
  });

  it('[TAIL-GAP] passed by retention, it says so and goes on from what is held', async () => {
    const rig = createRig();
    await rig.append(...Array.from({ length: 6 }, () => message(null)));
    rig.log.controls.evictBefore(EVENTS, 4);
    const { seen, errors, reader } = start(rig);
    await rig.time.settle();
    expect(seen).toEqual(['gap to 4', '4 message accepted', '5 message accepted']);
    expect(errors).toEqual([]);
    expect(reader.bounds()).toEqual({ start: 4, end: 6 });
  });

  it('[TAIL-GAP] before it goes on it learns the newest checkpoint, so that claims it never read are known', async () => {
    const rig = createRig();
    await rig.append(claimed('a', EPOCH, null), message(0), claimed('b', EPOCH, 0), message(2), message(2), message(2));
    rig.log.controls.evictBefore(EVENTS, 4);
    // A process that slept: until it has asked again it knows the checkpoint of long ago.
    let hint = hintAt(1, [0], 'a');
    const { seen, reader } = start(rig, {
      hint: () => hint,
      syncHints: () => {
        hint = hintAt(4, [0, 2], 'b');
        return Promise.resolve();
      },
    });
    await rig.time.settle();
    expect(seen).toEqual(['gap to 4', '4 message accepted', '5 message accepted']);
    expect(reader.claims().owner()).toEqual({ claim: 2, worker: 'b', released: false });
  });

  it('[TAIL-GAP] if the newest checkpoint can not be learned it waits, and tries again', async () => {
    const rig = createRig();
    await rig.append(message(null), message(null));
    rig.log.controls.evictBefore(EVENTS, 1);
    let attempts = 0;
    const { seen, errors } = start(rig, {
      syncHints: () =>
        ++attempts < 3 ? Promise.reject(new LogError('LOG_UNAVAILABLE', 'not now')) : Promise.resolve(),
    });
    await rig.time.settle();
    expect([seen, errors.length]).toEqual([[], 1]);
    await rig.time.advance(300);
    expect(seen).toEqual(['gap to 1', '1 message accepted']);
  });

  it('[TAIL-REACHED] waiting for a place ends when it is read, also across holes, when the caller gives up, and on stop', async () => {
    const rig = createRig();
    const { reader } = start(rig);
    expect(await rig.finish(reader.reached(0, OPEN))).toBe(true);
    const results: (readonly [string, boolean])[] = [];
    const giveUp = new AbortController();
    const note = (name: string) => (reached: boolean) => {
      results.push([name, reached]);
    };
    void reader.reached(2, OPEN).then(note('two'));
    void reader.reached(3, giveUp.signal).then(note('given up'));
    void reader.reached(9, OPEN).then(note('nine'));
    await rig.append(message(null));
    await rig.time.settle();
    expect(results).toEqual([]);
    await rig.append(message(null));
    giveUp.abort();
    await rig.time.settle();
    expect(results.sort()).toEqual([
      ['given up', false],
      ['two', true],
    ]);
    rig.log.controls.evictBefore(EVENTS, 2);
    await reader.stop();
    await rig.time.settle();
    expect(results.at(-1)).toEqual(['nine', false]);
    expect(await reader.reached(9, OPEN)).toBe(false);
  });

  it('[TAIL-STOP] after stop nothing is handed over any more, and no timer is left', async () => {
    const rig = createRig();
    const { reader, seen } = start(rig);
    await rig.time.settle();
    await reader.stop();
    await rig.append(message(null));
    await rig.time.advance(60_000);
    expect(seen).toEqual([]);
    expect(rig.time.pending()).toBe(0);
  });
});
