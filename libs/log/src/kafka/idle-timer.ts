/**
 * kafkajs 2.2.4 sets a timer after every answer, also when nothing waits for it: with a time of −1 ms, so that each
 * connection wakes the process a thousand times a second (kafkajs issue 1751). A check is needed only while requests
 * wait or the broker throttles. `idle-timer.test.ts` fails when a version of kafkajs makes this needless.
 */
import RequestQueue from 'kafkajs/src/network/requestQueue/index.js';

const CORRECTED = Symbol.for('throughline.kafkajs-idle-timer');

interface Correctable {
  scheduleCheckPendingRequests(this: RequestQueue): void;
  [CORRECTED]?: true;
}

/** Idempotent, also over several copies of this module. */
export function correctIdleTimer(): void {
  const queue = RequestQueue.prototype as Correctable;
  if (queue[CORRECTED] === true) return;
  const original = queue.scheduleCheckPendingRequests;
  queue.scheduleCheckPendingRequests = function (this: RequestQueue): void {
    if (this.pending.length > 0 || this.throttledUntil > Date.now()) original.call(this);
  };
  queue[CORRECTED] = true;
}
