/** From whom a request is, as gateways see it through the real proxies of infra/proxies. Proxies as in proxies.test.ts. */
import process from 'node:process';
import { exchange, makeScratchFolder, startThroughline } from '@throughline/testkit/processes';
import type { ThroughlineProcess } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findProxy, PROXY_NAMES } from '../../infra/proxies/find-proxy.ts';
import type { ProxyName, ProxyProgram } from '../../infra/proxies/find-proxy.ts';
import { drawGatewayPorts, startProxy } from '../../infra/proxies/start-proxy.ts';
import { showLogsOnFailure } from './show-logs.ts';

/** What the page says to write where another proxy is in front: addresses are appended, not replaced. */
const APPENDING: Readonly<Record<ProxyName, Readonly<Record<string, string>>>> = {
  haproxy: { 'http-request set-header X-Forwarded-For %[src]': 'option forwardfor' },
  nginx: { 'X-Forwarded-For $remote_addr': 'X-Forwarded-For $proxy_add_x_forwarded_for' },
};
/** One request a second, two at once: more than a machine sends within seconds gets 429. */
const MANY = 30;
const LIMIT_MS = 60_000;

const found = await Promise.all(PROXY_NAMES.map((name) => findProxy(name, { mayFetch: process.env['DEEP'] === '1' })));
/** Elsewhere a machine has one address of its own. */
const hasAddresses = process.platform === 'linux';
const programs = found.filter((each): each is ProxyProgram => hasAddresses && 'file' in each);

const resources = new AsyncDisposableStack();
/** Endpoints by proxy and by what the gateway behind it was started with. */
const urls = new Map<string, string>();
const gateways: ThroughlineProcess[] = [];

type Trust = 'loopback' | 'nobody' | 'the other proxy';

beforeAll(async () => {
  if (programs.length === 0) return;
  const start = async (trust: Trust, args: readonly string[]): Promise<void> => {
    const folder = resources.use(makeScratchFolder()).path;
    // One gateway in both places of the sample: each gateway counts for itself.
    const [ports] = await drawGatewayPorts();
    const limit = ['--max-requests-per-principal', '1'];
    gateways.push(resources.use(await startThroughline('serve', { folder, ports, args: [...limit, ...args] })));
    for (const program of programs) {
      const instead = trust === 'the other proxy' ? APPENDING[program.name] : {};
      const proxy = resources.use(await startProxy(program, { gateways: [ports, ports], instead }));
      urls.set(`${program.name} ${trust}`, proxy.url);
    }
  };
  await start('loopback', ['--trust-proxy', 'loopback']);
  await start('nobody', []);
  await start('the other proxy', ['--trust-proxy', '127.0.0.1']);
}, 120_000);
afterAll(() => resources.disposeAsync(), 60_000);

for (const each of found) if ('missing' in each) it.skip(`a proxy: ${each.missing}`, () => undefined);

describe.each(programs.map(({ name }) => name))('the address of a client of %s', (name) => {
  const number = PROXY_NAMES.indexOf(name) + 1;
  /** Addresses of this machine that no other test of the same gateway uses. */
  const own = (place: number): string => `127.0.${number}.${place}`;

  /** Statuses of so many requests at once: 404 is served, since it names a session that there is not. */
  async function burst(
    trust: Trust,
    count: number,
    from: (nth: number) => string,
    forged?: (nth: number) => string,
  ): Promise<number[]> {
    for (const gateway of gateways) showLogsOnFailure(gateway);
    const send = async (nth: number): Promise<number> => {
      const answer = await exchange(urls.get(`${name} ${trust}`) ?? '', {
        method: 'GET',
        localAddress: from(nth),
        headers: {
          Accept: 'text/event-stream',
          'Mcp-Session-Id': 'none',
          ...(forged === undefined ? {} : { 'X-Forwarded-For': forged(nth) }),
        },
      });
      answer.cut();
      return answer.status;
    };
    return await Promise.all(Array.from({ length: count }, (_, nth) => send(nth)));
  }

  it(
    '[PRX-ADDRESS] [AUTH-LIMIT-ADDRESS] one gets 429 while another is served, behind a proxy that is trusted',
    async () => {
      expect(await burst('loopback', MANY, () => own(1))).toContain(429);
      expect(await burst('loopback', 2, () => own(2))).toEqual([404, 404]);
    },
    LIMIT_MS,
  );

  it(
    '[PRX-ADDRESS] [GW-PROXY] is not what it forges, even where the proxy and all its clients are trusted',
    async () => {
      expect(
        await burst(
          'loopback',
          MANY,
          () => own(3),
          () => own(4),
        ),
      ).toContain(429);
      // The other's share is untouched,
      expect(await burst('loopback', 2, () => own(4))).toEqual([404, 404]);
      // and its own is used up, whatever it says.
      expect(
        await burst(
          'loopback',
          MANY,
          () => own(3),
          (nth) => `192.0.2.${nth}`,
        ),
      ).toContain(429);
    },
    LIMIT_MS,
  );

  it(
    '[PRX-ADDRESS] [GW-PROXY] is not what it forges where the proxy appends to what it is told',
    async () => {
      expect(
        await burst(
          'the other proxy',
          MANY,
          () => own(5),
          (nth) => `192.0.2.${nth}`,
        ),
      ).toContain(429);
      expect(
        await burst(
          'the other proxy',
          MANY,
          () => own(6),
          () => own(7),
        ),
      ).toContain(429);
      expect(await burst('the other proxy', 2, () => own(7))).toEqual([404, 404]);
    },
    LIMIT_MS,
  );

  it(
    '[PRX-ADDRESS] is what the proxy in front of that one wrote, where both are trusted and it appends',
    async () => {
      // 127.0.0.1 is trusted, so it stands for that proxy here.
      const inFront = (): string => '127.0.0.1';
      expect(await burst('the other proxy', MANY, inFront, () => `198.51.100.${number}`)).toContain(429);
      expect(await burst('the other proxy', 2, inFront, () => `203.0.113.${number}`)).toEqual([404, 404]);
    },
    LIMIT_MS,
  );

  it(
    '[PRX-ADDRESS] [GW-PROXY] is that of the proxy without --trust-proxy: all of its clients share one share',
    async () => {
      expect(await burst('nobody', MANY, (nth) => own(10 + nth))).toContain(429);
      expect(
        await burst(
          'nobody',
          MANY,
          () => own(9),
          (nth) => `192.0.2.${nth}`,
        ),
      ).toContain(429);
    },
    LIMIT_MS,
  );
});
