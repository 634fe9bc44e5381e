import { createVirtualTime } from '@throughline/testkit';
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RefusedError } from './answer-error.ts';
import { PrincipalLimits, takeRequest } from './principal-limits.ts';
import { call, createRig } from './testing/core-rig.ts';
import type { Exchange, Peer, Rig } from './testing/core-rig.ts';

describe('a share', () => {
  it.each<[string, Parameters<typeof takeRequest>, ReturnType<typeof takeRequest>]>([
    ['of one not seen is two seconds', [undefined, 10, 500], { ok: true, share: { left: 19, atMs: 500 } }],
    ['grows by its rate', [{ left: 3, atMs: 500 }, 10, 700], { ok: true, share: { left: 4, atMs: 700 } }],
    ['grows to two seconds', [{ left: 3, atMs: 0 }, 10, 99_000], { ok: true, share: { left: 19, atMs: 99_000 } }],
    ['that is used up says how long', [{ left: 0.5, atMs: 0 }, 10, 0], { ok: false, waitMs: 50 }],
    ['of one a second', [{ left: 0, atMs: 0 }, 1, 250], { ok: false, waitMs: 750 }],
  ])('[AUTH-LIMIT] %s', (_, given, taken) => {
    expect(takeRequest(...given)).toEqual(taken);
  });

  it('[AUTH-LIMIT] of a principal is no share of another, and everybody unknown has none', () => {
    const clock = createVirtualTime({ seed: 1 }).clock();
    const limits = new PrincipalLimits({ requestsPerSecondPerPrincipal: 5, streamsPerPrincipal: 1 }, clock);
    for (let number = 0; number < 10; number++) limits.enter('mallory');
    expect(() => {
      limits.enter('mallory');
    }).toThrow(RefusedError);
    for (let number = 0; number < 10; number++) limits.enter('alice');
    for (let number = 0; number < 100; number++) limits.enter('anonymous');
    const close = limits.openStream('mallory');
    expect(() => limits.openStream('mallory')).toThrow(RefusedError);
    limits.openStream('alice');
    close();
    close();
    limits.openStream('mallory');
    expect(() => limits.openStream('mallory')).toThrow(RefusedError);
  });

  it('[AUTH-LIMIT] is remembered for 10,000 principals: the one that was silent longest has a new one', () => {
    const clock = createVirtualTime({ seed: 1 }).clock();
    const limits = new PrincipalLimits({ requestsPerSecondPerPrincipal: 1, streamsPerPrincipal: 1 }, clock);
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

describe('a gateway', () => {
  let rig: Rig;
  let peer: Peer;
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
    const tokens = ['alice', 'mallory'].map((principal) => ({
      principal,
      sha256: createHash('sha256').update(principal).digest('hex'),
    }));
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
});
