import { createVirtualTime } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import type { SessionRecord } from '@throughline/protocol';
import { createScriptedHost } from '../testing/scripted-host.ts';
import { HostedSession } from './hosted-session.ts';
import { recordAfter, SessionTable } from './session-table.ts';

const RECORD: SessionRecord = {
  server: 'demo',
  principal: 'p',
  version: '2025-11-25',
  createdMs: 0,
  initialize: { jsonrpc: '2.0', id: 0, method: 'initialize' },
  initialized: true,
  logLevel: null,
  subscriptions: ['a'],
};

describe('the record of a session', () => {
  it.each([
    ['logging/setLevel', { level: 'debug' }, { logLevel: 'debug' }],
    ['logging/setLevel', {}, null],
    ['resources/subscribe', { uri: 'b' }, { subscriptions: ['a', 'b'] }],
    ['resources/subscribe', { uri: 'a' }, null],
    ['resources/unsubscribe', { uri: 'a' }, { subscriptions: [] }],
    ['resources/unsubscribe', { uri: 'b' }, null],
    ['notifications/initialized', undefined, null],
    ['tools/call', { uri: 'b' }, null],
  ])('[WRK-RESTORE] after %s %j changes by %j', (method, params, change) => {
    expect(recordAfter(RECORD, method, params)).toEqual(change === null ? null : { ...RECORD, ...change });
  });

  it('[WRK-RESTORE] says that the client is initialized once it said so', () => {
    const record = { ...RECORD, initialized: false };
    expect(recordAfter(record, 'notifications/initialized', undefined)).toEqual(RECORD);
  });
});

describe('the table of sessions', () => {
  it('[WRK-IDLE] names those to end and those to unload', async () => {
    const time = createVirtualTime({ seed: 1 });
    const clock = time.clock();
    const table = new SessionTable(clock);
    const host = createScriptedHost({ clock, worker: 'w', runs: [] });
    const add = (key: string, record: SessionRecord | null): HostedSession => {
      const session = new HostedSession(
        {
          key,
          server: 'demo',
          principal: 'p',
          host,
          clock,
          onMessage: () => Promise.resolve(),
          onCloseStream: () => undefined,
          onGone: () => undefined,
          onReady: () => undefined,
          takeSeat: () => true,
          freeSeat: () => undefined,
        },
        record,
        clock.wallMs(),
      );
      table.add(session);
      return session;
    };
    const asking = add('asking', null);
    asking.outgoing.set('x', { call: null, id: 1 });
    const loaded = add('loaded', { ...RECORD, initialized: false });
    await time.run(loaded.deliver({ jsonrpc: '2.0', method: 'notifications/x' }, false));
    await time.advance(5000);
    const names = (list: readonly (readonly [HostedSession, string])[]): readonly string[] =>
      list.map(([{ key }, reason]) => `${key} ${reason}`);
    expect(names(table.overdue(() => 6000, 10_000))).toEqual([]);
    expect(names(table.overdue(() => 4000, 10_000))).toEqual(['asking idle', 'loaded idle']);
    expect(names(table.overdue(() => 6000, 4000))).toEqual(['asking expired', 'loaded expired']);
    expect(table.unloadable(1000, () => true)).toEqual([]);
    loaded.record = RECORD;
    expect(table.unloadable(1000, () => true)).toEqual([loaded]);
    expect(table.unloadable(6000, () => true)).toEqual([]);
    expect(table.unloadable(1000, () => false)).toEqual([]);
  });
});
