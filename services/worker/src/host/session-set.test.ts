import { describe, expect, it } from 'vitest';
import type { HostCallbacks, HostContext, HostSession } from './host.ts';
import { createSessionSet } from './session-set.ts';

const message = { jsonrpc: '2.0', method: 'n' } as const;

function harness(): {
  readonly context: HostContext;
  readonly abort: () => void;
  readonly calls: string[];
  readonly callbacks: HostCallbacks;
  readonly start: (guarded: HostCallbacks) => Promise<HostSession>;
  readonly inner: () => HostCallbacks;
} {
  const controller = new AbortController();
  const calls: string[] = [];
  let inner: HostCallbacks | undefined;
  return {
    context: { sessionId: 's', principal: 'p', signal: controller.signal },
    abort: () => controller.abort(),
    calls,
    callbacks: {
      onMessage: async () => void calls.push('message'),
      onCloseStream: () => calls.push('close-stream'),
      onGone: (reason) => calls.push(`gone ${reason}`),
    },
    start: async (guarded) => {
      calls.push('start');
      inner = guarded;
      return { deliver: async () => undefined, close: async () => void calls.push('close') };
    },
    inner: () => inner!,
  };
}

describe('createSessionSet', () => {
  it('[HOST-CLOSE] calls nothing back after close', async () => {
    const { context, calls, callbacks, start, inner } = harness();
    const session = await createSessionSet().open(context, callbacks, start);
    await inner().onMessage(message);
    await session.close();
    await inner().onMessage(message);
    inner().onCloseStream(1);
    inner().onGone('late');
    await session.close();
    expect(calls).toEqual(['start', 'message', 'close']);
  });

  it('[HOST-GONE-ONCE] tells the end once, and closes what is left', async () => {
    const { context, calls, callbacks, start, inner } = harness();
    await createSessionSet().open(context, callbacks, start);
    inner().onGone('first');
    inner().onGone('second');
    expect(calls).toEqual(['start', 'gone first', 'close']);
  });

  it('[HOST-GONE-ONCE] tells an end that comes while the session starts only after open has resolved', async () => {
    const { context, calls, callbacks, start } = harness();
    const session = await createSessionSet().open(context, callbacks, async (guarded) => {
      const started = await start(guarded);
      guarded.onGone('at once');
      guarded.onGone('twice');
      return started;
    });
    calls.push('opened');
    expect(session).toBeDefined();
    await expect.poll(() => calls).toEqual(['start', 'opened', 'gone at once', 'close']);
  });

  it('[HOST-SIGNAL] closes a session whose signal aborts, also while it starts', async () => {
    const first = harness();
    await createSessionSet().open(first.context, first.callbacks, first.start);
    first.abort();
    expect(first.calls).toEqual(['start', 'close']);
    const second = harness();
    const opening = createSessionSet().open(second.context, second.callbacks, async (guarded) => {
      const started = await second.start(guarded);
      second.abort();
      return started;
    });
    await expect(opening).rejects.toMatchObject({ code: 'HOST_GONE' });
    expect(second.calls).toEqual(['start', 'close']);
  });

  it('[HOST-CLOSE] the closed set has closed every session and starts none', async () => {
    const { context, calls, callbacks, start } = harness();
    const set = createSessionSet();
    await set.open(context, callbacks, start);
    await set.open(context, callbacks, start);
    await set.close();
    await expect(set.open(context, callbacks, start)).rejects.toMatchObject({ code: 'HOST_GONE' });
    expect(calls).toEqual(['start', 'start', 'close', 'close']);
  });
});
