import { createVirtualTime } from '@throughline/testkit';
import { describe, expect, it } from 'vitest';
import { createScriptedHost } from '../testing/scripted-host.ts';
import { HostedSession, NoSeatError } from './hosted-session.ts';
import type { HostedSessionOptions } from './hosted-session.ts';

const time = createVirtualTime({ seed: 1 });
const clock = time.clock();
const note = (method: string): { jsonrpc: '2.0'; method: string } => ({ jsonrpc: '2.0', method });

function make(options: Partial<HostedSessionOptions> = {}): { session: HostedSession; seats: () => number } {
  let seats = 0;
  const session = new HostedSession(
    {
      key: 'k',
      server: 'demo',
      principal: 'p',
      host: createScriptedHost({ clock, worker: 'w', runs: [], openMs: 100 }),
      clock,
      onMessage: () => Promise.resolve(),
      onCloseStream: () => undefined,
      onGone: () => undefined,
      onReady: () => undefined,
      takeSeat: () => ++seats > 0,
      freeSeat: () => {
        seats--;
      },
      ...options,
    },
    null,
    0,
  );
  return { session, seats: () => seats };
}

describe('a hosted session', () => {
  it('[WRK-SEATS] gives its seat back however its instance ends: unloaded, gone, or never opened', async () => {
    const host = createScriptedHost({ clock, worker: 'w', runs: [], openMs: 100 });
    const { session, seats } = make({ host });
    await time.run(session.deliver(note('a'), false));
    expect([seats(), session.isLoaded]).toEqual([1, true]);
    await session.unload();
    expect([seats(), session.isLoaded, host.opened[0]?.isClosed]).toEqual([0, false, true]);
    await time.run(session.deliver(note('b'), false));
    host.opened[1]?.die();
    expect([seats(), session.isLoaded]).toEqual([0, false]);
    const opening = session.deliver(note('c'), false);
    await time.advance(50);
    expect(seats()).toBe(1);
    session.ended = true;
    await session.unload();
    await expect(opening).rejects.toMatchObject({ code: 'HOST_GONE' });
    await time.advance(200);
    expect([seats(), host.opened.length]).toEqual([0, 2]);
  });

  it('[WRK-SEATS] is not opened without a seat', async () => {
    const { session } = make({ takeSeat: () => false });
    await expect(session.deliver(note('a'), false)).rejects.toBeInstanceOf(NoSeatError);
  });

  it('[WRK-ORDER] what an instance says after it was unloaded is dropped', async () => {
    const said: unknown[] = [];
    const host = createScriptedHost({ clock, worker: 'w', runs: [] });
    const { session } = make({
      host,
      onMessage: (_session, message) => {
        said.push(message);
        return Promise.resolve();
      },
    });
    await time.run(session.deliver(note('a'), false));
    await host.opened[0]?.say({ method: 'notifications/x' });
    await session.unload();
    await host.opened[0]?.say({ method: 'notifications/late' });
    expect(said).toEqual([note('notifications/x')]);
  });

  it('[WRK-DEDUPE] remembers settled requests for a minute however many, and the newest for longer', async () => {
    const { session } = make();
    const call = { at: 0, stream: { kind: 'request', at: 0 } as const, bodyHash: 'h', after: null };
    for (let id = 0; id < 2000; id++) session.remember(`n${id}`, call);
    expect(session.settled.size).toBe(2000);
    await time.advance(61_000);
    session.remember('n2000', call);
    expect([session.settled.size, session.settled.has('n1489')]).toEqual([512, true]);
    for (let id = 0; id < 40_000; id++) session.remember(`m${id}`, call);
    expect(session.settled.size).toBe(16_384);
  });

  it('[WRK-PASS] is clogged when a thousand messages wait for a server that takes none', async () => {
    const { session } = make();
    const delivered = Array.from({ length: 1000 }, () => session.deliver(note('a'), false));
    expect(session.isClogged).toBe(true);
    await time.run(Promise.all(delivered));
    expect(session.isClogged).toBe(false);
  });
});
