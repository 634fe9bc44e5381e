/** Shares by address through real sockets: who is believed, what a forged header changes, and what is logged. */
import { afterEach, describe, expect, it } from 'vitest';
import type { GatewayConfig } from '../config.ts';
import { call, recordingLogger } from '../testing/core-rig.ts';
import type { LogLine } from '../testing/core-rig.ts';
import { createHttpRig, HEADERS, readAll } from '../testing/http-rig.ts';
import type { HttpRig } from '../testing/http-rig.ts';

const ALICE = '198.51.100.1';
const MALLORY = '203.0.113.9';
/** Two at once. What is more than a machine sends within seconds gets 429. */
const ONE_A_SECOND = { requestsPerSecondPerPrincipal: 1 };
const MANY = 30;
const LIMIT_MS = 60_000;

let rig: HttpRig;
let lines: LogLine[];

async function start(config: Partial<GatewayConfig>): Promise<void> {
  lines = [];
  rig = await createHttpRig(config, undefined, 1, recordingLogger(lines));
}
afterEach(() => rig.stop());

const via = (forwardedFor: string): Record<string, string> => ({ 'x-forwarded-for': forwardedFor });

/** Statuses of so many requests at once: 404 is served, since it names a session that there is not. */
function burst(count: number, forwardedFor: (number: number) => string): Promise<number[]> {
  const send = async (number: number): Promise<number> => {
    const response = await rig.post(call(1), { 'mcp-session-id': 'none', ...via(forwardedFor(number)) });
    await response.text();
    return response.status;
  };
  return Promise.all(Array.from({ length: count }, (_, number) => send(number)));
}

describe('where nobody is asked for a token', () => {
  it(
    '[AUTH-LIMIT-ADDRESS] [GW-PROXY] one address behind a trusted peer gets 429, another is served',
    async () => {
      await start({ ...ONE_A_SECOND, trustProxy: ['loopback'] });
      expect(await burst(MANY, () => MALLORY)).toContain(429);
      expect(await burst(2, () => ALICE)).toEqual([404, 404]);
    },
    LIMIT_MS,
  );

  it(
    '[GW-PROXY] what a client forges to the left of a trusted peer buys no second share',
    async () => {
      await start({ ...ONE_A_SECOND, trustProxy: ['127.0.0.1'] });
      expect(await burst(MANY, (number) => `192.0.2.${number}, ${MALLORY}`)).toContain(429);
      expect(await burst(2, () => `${MALLORY}, ${ALICE}`)).toEqual([404, 404]);
    },
    LIMIT_MS,
  );

  it(
    '[GW-PROXY] nor does one that stands in a line of its own, before that of the trusted peer',
    async () => {
      await start({ ...ONE_A_SECOND, trustProxy: ['loopback'] });
      const head = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n';
      const requests = Array.from(
        { length: MANY },
        (_, number) => `${head}X-Forwarded-For: 192.0.2.${number}\r\nX-Forwarded-For: ${MALLORY}\r\n\r\n`,
      );
      const socket = await rig.raw(`${requests.join('')}${head}Connection: close\r\n\r\n`);
      expect(await readAll(socket)).toContain('HTTP/1.1 429 ');
    },
    LIMIT_MS,
  );

  it.each([[[]], [['10.0.0.0/8']]])(
    '[GW-PROXY] a forged header of a peer that is not trusted (%j are) buys no share, and uses up none',
    async (trustProxy) => {
      await start({ ...ONE_A_SECOND, trustProxy });
      const statuses = await burst(MANY, (number) => `192.0.2.${number}`);
      expect(statuses).toContain(429);
      expect(statuses.slice().sort().slice(0, 2)).toEqual([404, 404]);
    },
    LIMIT_MS,
  );

  it(
    '[AUTH-LIMIT-ADDRESS] open streams are shared by address, those of IPv6 by /64, whatever the session',
    async () => {
      await start({ streamsPerPrincipal: 1, trustProxy: ['loopback'] });
      const sessions: string[] = [];
      for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.3'])
        sessions.push(await rig.open('2025-11-25', via(address)));
      const listen = async (session: number, address: string): Promise<number> => {
        const own = { ...HEADERS, 'mcp-session-id': sessions[session] ?? '' };
        return (await fetch(rig.url, { headers: { ...own, ...via(address) } })).status;
      };
      expect(await listen(0, '2001:db8:0:1::1')).toBe(200);
      expect(await listen(1, '2001:db8:0:1:ffff::2')).toBe(429);
      expect(await listen(1, '2001:db8:0:2::1')).toBe(200);
      expect(await listen(2, ALICE)).toBe(200);
    },
    LIMIT_MS,
  );

  it(
    '[AUTH-LIMIT-ADDRESS] without limits of the configuration there are none',
    async () => {
      await start({});
      expect(new Set(await burst(300, () => MALLORY))).toEqual(new Set([404]));
    },
    LIMIT_MS,
  );

  it(
    '[AUTH-LIMIT-ADDRESS] the address of a client is neither logged nor said',
    async () => {
      await start({ ...ONE_A_SECOND, trustProxy: ['loopback'] });
      await rig.open('2025-11-25', via(ALICE));
      let refusal = '';
      for (let number = 0; number < MANY && refusal === ''; number++) {
        const response = await rig.post(call(1), { 'mcp-session-id': 'none', ...via(ALICE) });
        const text = await response.text();
        if (response.status === 429) refusal = text;
      }
      expect(refusal).toContain('RATE_LIMITED');
      expect(refusal).not.toContain(ALICE);
      expect(lines.length).toBeGreaterThan(0);
      expect(JSON.stringify(lines)).not.toContain(ALICE);
      expect(JSON.stringify(await rig.backend.inbound())).not.toContain(ALICE);
    },
    LIMIT_MS,
  );
});
