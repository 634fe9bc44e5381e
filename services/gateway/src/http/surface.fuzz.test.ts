/** Random requests at one gateway, with a witness beside them that must not notice. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { noMetrics } from '@throughline/telemetry';
import { cutAt, fuzzAsync, FUZZ_DEADLINE_MS, mutations } from '@throughline/testkit/fuzz';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { call, initialize, recordingLogger } from '../testing/core-rig.ts';
import type { LogLine } from '../testing/core-rig.ts';
import { createHttpRig, until } from '../testing/http-rig.ts';
import { openWitness } from '../testing/witness.ts';

const CRLF = '\r\n';
/** A server that says nothing for as long has nothing to say: the request was not one yet, or its stream is open. */
const QUIET_MS = 40;
const ANSWER = /HTTP\/1\.1 (\d{3})/g;

/** Requests that would be taken. `SESSION` and `CURSOR` stand for a session of the attacker's own, and an id of it. */
function validRequests(): string[] {
  const post = (body: unknown, ...headers: readonly string[]): string => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const own = ['Host: localhost', 'Accept: application/json, text/event-stream', 'Content-Type: application/json'];
    return [`POST /mcp HTTP/1.1`, ...own, ...headers, `Content-Length: ${text.length}`, '', text].join(CRLF);
  };
  const bare = (method: string, ...headers: readonly string[]): string =>
    [`${method} /mcp HTTP/1.1`, 'Host: localhost', 'Accept: text/event-stream', ...headers, '', ''].join(CRLF);
  const session = 'Mcp-Session-Id: SESSION';
  const chunked = ['20', '{"jsonrpc":"2.0","method":"abcd"}'.slice(0, 32), '1', '}', '0', '', ''].join(CRLF);
  return [
    post(call(1), session, 'MCP-Protocol-Version: 2025-11-25'),
    post({ jsonrpc: '2.0', method: 'n' }, session, 'Origin: http://localhost:1'),
    post({ jsonrpc: '2.0', method: 'n' }, session, 'Expect: 100-continue'),
    post([call(1), call(2)], session, 'Authorization: Bearer abc'),
    post(initialize('2025-11-25')),
    `${post('', session, 'Transfer-Encoding: chunked').replace(/Content-Length: 0\r\n/, '')}${chunked}`,
    bare('GET', session),
    bare('GET', session, 'Last-Event-ID: CURSOR'),
    bare('OPTIONS', 'Origin: http://localhost', 'Access-Control-Request-Method: POST'),
    `${post({ jsonrpc: '2.0', method: 'n' }, session)}${post({ jsonrpc: '2.0', method: 'n' }, session)}`,
  ];
}

interface Attack {
  readonly bytes: Buffer;
  readonly cuts: readonly number[];
  readonly leaves: 'at once' | 'half' | 'when it is quiet';
}

const attack: fc.Arbitrary<Attack> = fc.record({
  bytes: mutations(validRequests()),
  cuts: fc.array(fc.nat(2000), { maxLength: 3 }),
  leaves: fc.constantFrom('at once', 'half', 'when it is quiet', 'when it is quiet', 'when it is quiet'),
});

/** Those that come at once. */
const attacks = fc.array(attack, { minLength: 1, maxLength: 8 });

/** Inputs that once broke something. */
const FINDS: readonly (readonly Attack[])[] = [];

it(
  '[GW-FUZZ] whatever is sent, every answer is 2xx, 4xx, 503 or 504, nothing fails inside, and the witness notices nothing',
  async () => {
    const lines: LogLine[] = [];
    let connections = 0;
    const set = (name: string, value: number): void => {
      if (name === 'throughline_gateway_connections') connections = value;
    };
    const rig = await createHttpRig({ appendTimeoutMs: 5000 }, { ...noMetrics, set }, 1, recordingLogger(lines));
    const witness = await openWitness(rig);
    let own = await rig.open();
    let count = 0;

    const strike = async ({ bytes, cuts, leaves }: Attack): Promise<void> => {
      const text = bytes
        .toString('latin1')
        .replaceAll('SESSION', own)
        .replaceAll('CURSOR', `${own.slice(0, 12)}.0.1.r1.0.x`);
      const socket = await rig.raw('');
      let answer = '';
      socket.on('error', () => undefined).on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
      for (const part of cutAt(Buffer.from(text, 'latin1'), cuts)) socket.write(part);
      if (leaves === 'half') socket.end();
      if (leaves !== 'at once') await quiet(socket);
      socket.destroy();
      for (const [, status] of answer.matchAll(ANSWER)) expect(status).toMatch(/^(100|2..|4..|503|504)$/);
    };
    const round = async (strikes: readonly Attack[]): Promise<void> => {
      // An attacker may lose its own session; a new one is as good.
      if (count++ % 50 === 0) own = await rig.open();
      await Promise.all(strikes.map(strike));
      expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
      await witness.unharmed();
    };
    try {
      expect(await fuzzAsync('HTTP', attacks, round, { finds: FINDS, changeMs: 3000 })).toBeGreaterThan(0);
      await witness.unharmed();
      await until(() => connections === 1);
    } finally {
      await witness.close();
      await rig.stop();
    }
  },
  FUZZ_DEADLINE_MS,
);

/** Resolves when the server has closed the connection, or says nothing more. */
async function quiet(socket: Socket): Promise<void> {
  for (;;) {
    const silence = AbortSignal.timeout(QUIET_MS);
    try {
      await Promise.race([once(socket, 'data', { signal: silence }), once(socket, 'close', { signal: silence })]);
    } catch {
      return;
    }
    if (socket.closed) return;
  }
}
