import { encodeText } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { LogError } from './errors.ts';
import { createManualClock } from './manual-clock.ts';
import { createMemoryLog } from './memory/index.ts';
import type { Log } from './port.ts';
import { openView } from './view.ts';

const META = { topic: 'meta', partition: 0 } as const;
const record = (key: string) => ({ key: encodeText(key), value: encodeText('x'), headers: [] });

describe('view', () => {
  it('[LOG-VIEW-SYNC] sync resolves only when everything acked at the time of the call was applied', async () => {
    const clock = createManualClock();
    const log = createMemoryLog({ clock });
    await log.append(META, [record('a'), record('b')]);
    const keys: string[] = [];
    const view = openView({ log, clock, of: META, apply: (key) => keys.push(key), onFinding: () => undefined });
    expect(view.position()).toBe(0);
    await view.sync();
    expect(keys).toEqual(['a', 'b']);
    expect(view.position()).toBe(2);
    await log.append(META, [record('c')]);
    await view.sync();
    expect(keys).toEqual(['a', 'b', 'c']);
    await view.close();
  });

  it('[LOG-VIEW-SYNC] sync rejects with ABORTED by its signal, and with CLOSED when the view or its log is closed', async () => {
    for (const [end, code] of [
      ['signal', 'ABORTED'],
      ['view', 'CLOSED'],
      ['log', 'CLOSED'],
    ] as const) {
      const clock = createManualClock();
      const log = createMemoryLog({ clock });
      await log.append(META, [record('a')]);
      const stuck: Log = {
        ...log,
        read: (ref, position, options) =>
          log.read(ref, position, options).then(() => log.read(ref, 1, { ...options, waitMs: 1e9 })),
      };
      const view = openView({ log: stuck, clock, of: META, apply: () => undefined, onFinding: () => undefined });
      const controller = new AbortController();
      const outcome = expect(view.sync(controller.signal)).rejects.toMatchObject({ name: 'LogError', code });
      await clock.advance(10);
      if (end === 'signal') controller.abort();
      else if (end === 'view') await view.close();
      else await log.close();
      await outcome;
      await view.close();
      expect(clock.timers()).toBe(0);
    }
  });

  it('[LOG-VIEW-RETRY] a view whose log does not answer says so, tries again and misses nothing', async () => {
    const clock = createManualClock();
    const log = createMemoryLog({ clock });
    const errors: unknown[] = [];
    const keys: string[] = [];
    let isDown = true;
    const flaky: Log = {
      ...log,
      read: (...args) => (isDown ? Promise.reject(new LogError('LOG_UNAVAILABLE', 'no')) : log.read(...args)),
    };
    const view = openView({
      log: flaky,
      clock,
      of: META,
      apply: (key) => keys.push(key),
      onFinding: () => undefined,
      onError: (error) => errors.push(error),
    });
    await log.append(META, [record('a')]);
    await clock.advance(600);
    expect(errors.length).toBeGreaterThanOrEqual(2);
    expect(errors[0]).toMatchObject({ code: 'LOG_UNAVAILABLE' });
    expect(keys).toEqual([]);
    isDown = false;
    await clock.advance(300);
    expect(keys).toEqual(['a']);
    await view.close();
  });

  it('[LOG-VIEW-START] a view begins at the start of what is held', async () => {
    const clock = createManualClock();
    const log = createMemoryLog({ clock });
    await log.append(META, [record('a'), record('b'), record('c')]);
    log.controls.evictBefore(META, 2);
    const keys: string[] = [];
    const view = openView({ log, clock, of: META, apply: (key) => keys.push(key), onFinding: () => undefined });
    await view.sync();
    expect(keys).toEqual(['c']);
    await view.close();
  });
});
