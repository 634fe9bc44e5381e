import { STANDALONE } from '@throughline/protocol';
import { createVirtualTime } from '@throughline/testkit';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RefusedError } from './answer-error.ts';
import { GatewayConfigSchema } from './config.ts';
import { limitsOf, PrincipalLimits, takeOne } from './principal-limits.ts';
import { progress } from './testing/backend.ts';
import { call, createRig, initialize } from './testing/core-rig.ts';
import type { Exchange, Peer, Rig } from './testing/core-rig.ts';

const NO_LIMITS = {
  requestsPerSecondPerPrincipal: null,
  streamsPerPrincipal: null,
  newSessionsPerHourPerPrincipal: null,
};

describe('a share', () => {
  const ten = { perSecond: 10, atOnce: 20 };

  it.each<[string, Parameters<typeof takeOne>, ReturnType<typeof takeOne>]>([
    ['of one not seen is all at once', [undefined, ten, 500], { ok: true, share: { left: 19, atMs: 500 } }],
    ['grows by its rate', [{ left: 3, atMs: 500 }, ten, 700], { ok: true, share: { left: 4, atMs: 700 } }],
    ['grows no further', [{ left: 3, atMs: 0 }, ten, 99_000], { ok: true, share: { left: 19, atMs: 99_000 } }],
    ['that is used up says how long', [{ left: 0.5, atMs: 0 }, ten, 0], { ok: false, waitMs: 50 }],
    ['of one a second', [{ left: 0, atMs: 0 }, { perSecond: 1, atOnce: 2 }, 250], { ok: false, waitMs: 750 }],
  ])('[AUTH-LIMIT] [AUTH-LIMIT-SESSIONS] %s', (_, given, taken) => {
    expect(takeOne(...given)).toEqual(taken);
  });

  it('[AUTH-LIMIT] of a principal is no share of another, and who has no key has none', () => {
    const clock = createVirtualTime({ seed: 1 }).clock();
    const limits = new PrincipalLimits(
      { ...NO_LIMITS, requestsPerSecondPerPrincipal: 5, streamsPerPrincipal: 1 },
      clock,
    );
    for (let number = 0; number < 10; number++) limits.enter('mallory');
    expect(() => {
      limits.enter('mallory');
    }).toThrow(RefusedError);
    for (let number = 0; number < 10; number++) limits.enter('alice');
    for (let number = 0; number < 100; number++) limits.enter(null);
    const { leave } = limits.openStream('mallory', null);
    expect(() => limits.openStream('mallory', null)).toThrow(RefusedError);
    limits.openStream('alice', null);
    leave();
    leave();
    limits.openStream('mallory', null);
    expect(() => limits.openStream('mallory', null)).toThrow(RefusedError);
  });

  it('[AUTH-LIMIT] is remembered for 10,000 principals: the one that was silent longest has a new one', () => {
    const clock = createVirtualTime({ seed: 1 }).clock();
    const limits = new PrincipalLimits(
      { ...NO_LIMITS, requestsPerSecondPerPrincipal: 1, streamsPerPrincipal: 1 },
      clock,
    );
    const use = (name: string): void => {
      limits.enter(name);
      limits.enter(name);
    };
    use('first');
    use('second');
    for (let number = 0; number < 9999; number++) limits.enter(`other ${number}`);
    expect(() => {
      limits.enter('second');
    }).toThrow(RefusedError);
    use('first');
  });
});

describe('a takeover of an own stream', () => {
  const limits = () =>
    new PrincipalLimits(
      { ...NO_LIMITS, requestsPerSecondPerPrincipal: 5, streamsPerPrincipal: 2 },
      createVirtualTime({ seed: 1 }).clock(),
    );
  const isRefused = (of: PrincipalLimits, stream: string | null): boolean => {
    try {
      of.openStream('a', stream).leave();
      return false;
    } catch {
      return true;
    }
  };

  it('[AUTH-LIMIT-TAKEOVER] is free beside the one that it takes over, and no second one is', () => {
    const of = limits();
    const first = of.openStream('a', 's');
    of.openStream('a', 't');
    expect([isRefused(of, 'u'), isRefused(of, null), isRefused(of, 's'), isRefused(of, 't')]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    const second = of.openStream('a', 's');
    expect([isRefused(of, 's'), isRefused(of, 't')]).toEqual([true, false]);
    // The one that was taken over goes: the other is what counts now.
    first.leave();
    first.leave();
    expect([isRefused(of, 'u'), isRefused(of, 's')]).toEqual([true, false]);
    second.leave();
    expect(isRefused(of, 'u')).toBe(false);
  });

  it('[AUTH-LIMIT-TAKEOVER] is known of a stream that got its name when its request was in the log', () => {
    const of = limits();
    of.openStream('a', null);
    const call = of.openStream('a', null);
    expect(isRefused(of, 'r7')).toBe(true);
    call.isOf('r7');
    expect([isRefused(of, 'r7'), isRefused(of, 'r8')]).toEqual([false, true]);
    call.leave();
    expect([isRefused(of, 'r8')]).toEqual([false]);
  });

  it('[AUTH-LIMIT-TAKEOVER] of any order of connections a share holds at most twice its streams, and forgets all', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(3), fc.nat(30)), { maxLength: 60 }), (steps) => {
        const of = limits();
        const open: { leave(): void }[] = [];
        for (const [stream, pick] of steps) {
          if (pick < 12 && open.length > 0) open.splice(pick % open.length, 1)[0]!.leave();
          else
            try {
              open.push(of.openStream('a', stream === 3 ? null : `s${stream}`));
            } catch {
              // Beyond the share.
            }
          expect(open.length).toBeLessThanOrEqual(4);
        }
        for (const each of open) each.leave();
        for (const stream of ['x', 'y']) of.openStream('a', stream);
        expect(isRefused(of, 'z')).toBe(true);
      }),
    );
  });
});

describe('the sizes of shares', () => {
  const tokens = [{ principal: 'alice', sha256: '0'.repeat(64) }];
  const issuers = [{ issuer: 'https://id.example', jwksUrl: 'https://id.example/keys' }];
  const given = { requestsPerSecondPerPrincipal: 7, streamsPerPrincipal: 8, newSessionsPerHourPerPrincipal: 9 };

  it.each<[string, object, readonly (number | null)[]]>([
    ['are these by default where tokens are listed', { tokens }, [1000, 1000, 10_000]],
    ['are these by default where tokens are issued', { issuers }, [1000, 1000, 10_000]],
    ['are those of the configuration', { tokens, ...given }, [7, 8, 9]],
    ['are none where nobody is asked for a token', {}, [null, null, null]],
    ['are those of the configuration there as well', { requestsPerSecondPerPrincipal: 7 }, [7, null, null]],
    ['are each by itself', { newSessionsPerHourPerPrincipal: 9 }, [null, null, 9]],
  ])('[AUTH-LIMIT] [AUTH-LIMIT-SESSIONS] [AUTH-LIMIT-ADDRESS] %s', (_, config, [requests, streams, sessions]) => {
    const secrets = [new Uint8Array(32)];
    const limits = limitsOf(GatewayConfigSchema.parse({ servers: ['demo'], secrets, ...config }));
    expect(limits).toEqual({
      requestsPerSecondPerPrincipal: requests,
      streamsPerPrincipal: streams,
      newSessionsPerHourPerPrincipal: sessions,
    });
  });
});

describe('whose share is used', () => {
  const clock = createVirtualTime({ seed: 1 }).clock();
  const limits = new PrincipalLimits(
    { ...NO_LIMITS, requestsPerSecondPerPrincipal: 5, streamsPerPrincipal: null },
    clock,
  );

  it.each<[string, string, string | null | undefined, string | null]>([
    ['that of a principal, from anywhere', 'alice', '198.51.100.1', 'alice'],
    ['that of the address of one unknown', 'anonymous', '198.51.100.1', 'address:198.51.100.1'],
    ['that of the network of an IPv6 address', 'anonymous', '2001:db8::1', 'address:2001:db8:0:0::/64'],
    ['one of all whose address is not known', 'anonymous', null, 'address:unknown'],
    ['none where clients have no addresses', 'anonymous', undefined, null],
  ])('[AUTH-LIMIT-ADDRESS] %s', (_, principal, address, share) => {
    const request = address === undefined ? {} : { clientAddress: () => address };
    expect(limits.shareOf(principal, request)).toBe(share);
  });

  it('[AUTH-LIMIT-ADDRESS] where there are no limits nobody looks at an address', () => {
    const none = new PrincipalLimits(NO_LIMITS, clock);
    const clientAddress = (): never => {
      throw new TypeError('looked at');
    };
    expect(none.shareOf('anonymous', { clientAddress })).toBeNull();
  });
});

describe('a gateway', () => {
  let rig: Rig;
  let peer: Peer;
  const tokens = ['alice', 'mallory'].map((principal) => ({
    principal,
    sha256: createHash('sha256').update(principal).digest('hex'),
  }));
  const as = (name: string): { readonly headers: Readonly<Record<string, string>> } => ({
    headers: { authorization: `Bearer ${name}` },
  });
  const outcome = ({ sink, json }: Exchange): readonly unknown[] => [
    sink.status,
    sink.status === 429 ? json().error?.data['code'] : null,
    sink.headers['Retry-After'],
  ];

  beforeEach(async () => {
    rig = await createRig();
    await rig.backend.startWorker();
    peer = await rig.gateway({ tokens, requestsPerSecondPerPrincipal: 2, streamsPerPrincipal: 2 });
  });
  afterEach(() => rig.stop());

  it('[AUTH-LIMIT] answers 429 with Retry-After beyond a share, takes nothing in, and serves others', async () => {
    const session = await rig.open(peer, '2025-11-25', as('mallory'));
    const ping = { jsonrpc: '2.0', method: 'notifications/initialized' };
    for (let number = 0; number < 3; number++)
      expect((await peer.post(session, ping, as('mallory'))).sink.status).toBe(202);
    const before = (await rig.backend.inbound()).length;
    expect(outcome(await peer.post(session, ping, as('mallory')))).toEqual([429, 'RATE_LIMITED', '1']);
    expect((await rig.backend.inbound()).length).toBe(before);
    await rig.open(peer, '2025-11-25', as('alice'));
    await rig.time.advance(500);
    expect((await peer.post(session, ping, as('mallory'))).sink.status).toBe(202);
  });

  it('[AUTH-LIMIT] answers 429 to a stream too many, and has room again when one ends', async () => {
    const session = await rig.open(peer, '2025-11-25', as('mallory'));
    const [first] = [
      await peer.post(session, call(1), as('mallory')),
      await peer.get(session, undefined, as('mallory')),
    ];
    await rig.time.advance(2000);
    expect(outcome(await peer.post(session, call(2), as('mallory')))).toEqual([429, 'RATE_LIMITED', '1']);
    first.abort();
    await rig.time.run(first.done);
    expect((await peer.post(session, call(3), as('mallory'))).sink.status).toBe(200);
  });

  it('[AUTH-LIMIT-TAKEOVER] lets a client whose sockets are half open come back to its own streams, at its limit', async () => {
    const session = await rig.open(peer, '2025-11-25', as('mallory'));
    const asked = await peer.post(session, call(1), as('mallory'));
    const listening = await peer.get(session, undefined, as('mallory'));
    await rig.time.advance(2000);
    await rig.backend.say(session, STANDALONE, progress(1));
    await rig.time.advance(100);
    // Neither connection is known to be gone.
    const resumed = await peer.get(session, asked.blocks().at(-1)?.id, as('mallory'));
    const again = await peer.get(session, listening.blocks().at(-1)?.id, as('mallory'));
    await rig.time.advance(2000);
    expect([resumed.sink.status, again.sink.status]).toEqual([200, 200]);
    expect([asked.sink.isEnded, listening.sink.isEnded]).toEqual([true, true]);
    const anew = await peer.get(session, undefined, as('mallory'));
    await rig.time.advance(2000);
    expect([anew.sink.status, again.sink.isEnded]).toEqual([200, true]);
    expect(outcome(await peer.post(session, call(2), as('mallory')))).toEqual([429, 'RATE_LIMITED', '1']);
  });

  it('[AUTH-LIMIT-SESSIONS] answers 429 with Retry-After to an initialize too many in an hour, takes nothing in, and lets others begin', async () => {
    const other = await rig.gateway({ tokens, newSessionsPerHourPerPrincipal: 3 });
    const session = await rig.open(other, '2025-11-25', as('mallory'));
    await rig.time.run((await other.send('DELETE', null, { session, ...as('mallory') })).done);
    for (let number = 0; number < 2; number++) await rig.open(other, '2025-11-25', as('mallory'));
    const before = (await rig.backend.inbound()).length;
    // It makes no difference that one of them has ended: it is remembered. A third of an hour for the next one.
    expect(outcome(await other.send('POST', initialize('2025-11-25'), as('mallory')))).toEqual([
      429,
      'RATE_LIMITED',
      '1200',
    ]);
    expect((await rig.backend.inbound()).length).toBe(before);
    await rig.open(other, '2025-11-25', as('alice'));
    await rig.time.advance(1_200_000);
    await rig.open(other, '2025-11-25', as('mallory'));
  });
});
