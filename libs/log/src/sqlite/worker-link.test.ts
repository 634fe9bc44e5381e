import { describe, expect, it } from 'vitest';
import { createVirtualTime } from '@throughline/testkit';
import { answerWithin } from '../answer-within.ts';
import type { Log } from '../port.ts';
import { startWorkerLink } from './worker-link.ts';
import type { LinkListener } from './worker-link.ts';

const SETTINGS = {
  file: 'nowhere',
  partitions: 1,
  maxBytes: null,
  retentionMs: 1000,
  leaseMs: 1000,
  compactionGraceMs: 1000,
  busyMs: 1000,
};
const LISTENER: LinkListener = {
  wantsBytes: () => false,
  onAppended: () => undefined,
  onAppends: () => undefined,
  onEvent: () => undefined,
  onBroken: () => undefined,
};
/** A thread that lives, and says nothing but what it is told to say once. */
const threadThatSays = (said: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(
      `import { workerData } from 'node:worker_threads'; setInterval(() => undefined, 1000); ${said}`,
    )}`,
  );

describe('a thread that never answers', () => {
  it('[WAIT-SQLITE] the log is not opened after 30 s, and the thread is ended', async () => {
    const time = createVirtualTime({ seed: 1 });
    const opening = startWorkerLink(
      SETTINGS,
      { clock: time.clock(), maxQueuedBytes: 1000, entry: threadThatSays('') },
      LISTENER,
    );
    await expect(time.run(opening)).rejects.toMatchObject({
      code: 'LOG_UNAVAILABLE',
      message: 'the log was not opened within 30 s',
    });
    expect(time.nowMs()).toBe(30_000);
    expect(time.pending()).toBe(0);
  });

  it('[WAIT-SQLITE] once it is open, appends and calls end as those of every log, and closing takes 5 s', async () => {
    const time = createVirtualTime({ seed: 1 });
    const clock = time.clock();
    const said = `workerData.port.postMessage({ acks: [], events: [{ kind: 'opened', id: 0, clusterId: 'c', partitions: 1 }] });`;
    const { link } = await startWorkerLink(
      SETTINGS,
      { clock, maxQueuedBytes: 1000, entry: threadThatSays(said) },
      LISTENER,
    );
    const log = answerWithin(
      {
        append: () => link.append(0, [{ key: null, value: null, headers: [] }]),
        committed: () => link.call({ kind: 'committed', group: 'workers' }) as never,
      } as unknown as Log,
      clock,
    );
    await expect(time.run(log.append({ topic: 'events', partition: 0 }, []))).rejects.toMatchObject({
      code: 'APPEND_UNKNOWN',
    });
    await expect(time.run(log.committed('workers'))).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE' });
    expect(time.nowMs()).toBe(60_000);
    const closing = link.close();
    await time.advance(5000);
    await closing;
  });
});
