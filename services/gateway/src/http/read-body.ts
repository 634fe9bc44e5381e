/**
 * Reads the body of a request within its room. It is gathered in one buffer: a list of what came would hold an object
 * of some hundred bytes for each byte of a client that sends them one by one. SPEC: GW-LIMIT, GW-BODY-SHARE.
 */
import type { IncomingMessage } from 'node:http';
import type { BodyExcess, BodyRoom } from './body-budget.ts';

export interface ReadBodyOptions {
  /** Grows as the body comes; whoever opened it releases it. */
  readonly room: BodyRoom;
  /** Bytes of the largest body. */
  readonly most: number;
  /** Bytes that the request says it has; `null`: it does not. */
  readonly announced: number | null;
}

/** `gone`: the client went, or sent what no reader of HTTP can read to its end. */
export type BodyOutcome = Buffer | 'too-large' | 'gone' | BodyExcess;

const FIRST_BYTES = 4096;

/** Never rejects. What is left of a body that was not taken is read and dropped. */
export function readBody(request: IncomingMessage, options: ReadBodyOptions): Promise<BodyOutcome> {
  const { room, most, announced } = options;
  return new Promise((resolve) => {
    // It was closed while somebody was asked whom it speaks for: no event comes any more.
    if (request.destroyed) {
      resolve('gone');
      return;
    }
    let held = Buffer.alloc(0);
    let length = 0;
    const finish = (outcome: BodyOutcome): void => {
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      if (!Buffer.isBuffer(outcome)) request.resume();
      resolve(outcome);
    };
    const onData = (chunk: Buffer): void => {
      const needed = length + chunk.length;
      if (needed > most) {
        finish('too-large');
        return;
      }
      if (needed > held.length) {
        const size = Math.max(needed, Math.min(announced ?? most, Math.max(FIRST_BYTES, 2 * held.length)));
        const excess = room.grow(size - held.length);
        if (excess !== null) {
          finish(excess);
          return;
        }
        const larger = Buffer.allocUnsafe(size);
        held.copy(larger, 0, 0, length);
        held = larger;
      }
      chunk.copy(held, length);
      length = needed;
    };
    const onEnd = (): void => {
      // What is kept of a message must not keep what was left over behind it.
      finish(length === held.length ? held : Buffer.from(held.subarray(0, length)));
    };
    const onGone = (): void => {
      finish('gone');
    };
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}
