import type { IncomingMessage } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BodyBudget } from './body-budget.ts';
import type { BodyRoom } from './body-budget.ts';
import { readBody } from './read-body.ts';

const MOST = 10_000;
const asRequest = (stream: Readable): IncomingMessage => stream as unknown as IncomingMessage;
const open = (most = 1_000_000): BodyRoom => new BodyBudget({ most, mostOfShare: most }).open('a');

/** A room that tells what it gave. */
function metered(): { room: BodyRoom; given(): number } {
  let given = 0;
  const grow = (bytes: number): null => {
    given += bytes;
    return null;
  };
  return { room: { grow, release: () => undefined }, given: () => given };
}

describe('room for bodies', () => {
  it('[GW-BODY-SHARE] of one share is bounded, and so are all together; one that is over gives back what it had', () => {
    const budget = new BodyBudget({ most: 100, mostOfShare: 40 });
    const [first, second] = [budget.open('a'), budget.open('a')];
    expect([first.grow(30), second.grow(10), second.grow(1)]).toEqual([null, null, 'share']);
    expect([budget.excessOf('a', 1), budget.excessOf('b', 40), budget.excessOf('b', 41)]).toEqual([
      'share',
      null,
      'share',
    ]);
    const [other, nobodys] = [budget.open('b'), budget.open(null)];
    expect([other.grow(40), nobodys.grow(20), nobodys.grow(1), budget.excessOf('c', 1)]).toEqual([
      null,
      null,
      'all',
      'all',
    ]);
    first.release();
    first.release();
    expect([budget.excessOf('a', 30), budget.excessOf('a', 31), nobodys.grow(30)]).toEqual([null, 'share', null]);
    expect(() => first.grow(1)).toThrow(TypeError);
  });
});

describe('the body of a request', () => {
  it('[GW-LIMIT] is what came, however it was cut, whether or not it was announced', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 6000 }), { maxLength: 4 }),
        fc.boolean(),
        async (chunks, isAnnounced) => {
          const whole = Buffer.concat(chunks);
          const announced = isAnnounced ? whole.length : null;
          const body = await readBody(asRequest(Readable.from(chunks.map((chunk) => Buffer.from(chunk)))), {
            room: open(),
            most: 24_000,
            announced,
          });
          expect(Buffer.isBuffer(body) && body.equals(whole)).toBe(true);
        },
      ),
    );
  });

  it('[GW-BODY-SHARE] that is announced and does not come takes nothing', async () => {
    const { room, given } = metered();
    const request = new PassThrough();
    const reading = readBody(asRequest(request), { room, most: MOST, announced: MOST });
    await new Promise(setImmediate);
    expect(given()).toBe(0);
    request.write('{');
    await new Promise(setImmediate);
    expect(given()).toBe(4096);
    request.destroy();
    expect(await reading).toBe('gone');
  });

  it('[GW-BODY-SHARE] that comes byte by byte takes at most twice its bytes', async () => {
    const { room, given } = metered();
    const bytes = Array.from({ length: 40_000 }, () => Buffer.from('x'));
    const body = await readBody(asRequest(Readable.from(bytes)), { room, most: 1_000_000, announced: null });
    expect(body).toHaveLength(40_000);
    expect(given()).toBeLessThanOrEqual(80_000);
    // Kept is what came, without the rest of the buffer.
    expect((body as Buffer).buffer.byteLength).toBe(40_000);
  });

  it.each([
    ['too-large', MOST + 1, 1_000_000],
    ['share', 9000, 8000],
  ] as const)(
    '[GW-LIMIT] that is beyond a bound (%s) is dropped, and read to its end',
    async (outcome, bytes, held) => {
      const request = new PassThrough();
      const reading = readBody(asRequest(request), { room: open(held), most: MOST, announced: null });
      request.write(Buffer.alloc(bytes));
      expect(await reading).toBe(outcome);
      request.end(Buffer.alloc(100_000));
      await new Promise((resolve) => request.once('end', resolve));
      expect(request.readableLength).toBe(0);
    },
  );

  it('[GW-BODY-SHARE] of a client that went before anybody read is gone, and not waited for', async () => {
    const request = new PassThrough();
    request.destroy();
    await new Promise((resolve) => request.once('close', resolve));
    expect(await readBody(asRequest(request), { room: open(), most: MOST, announced: 5 })).toBe('gone');
  });
});
