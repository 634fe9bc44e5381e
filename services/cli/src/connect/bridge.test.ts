import { PassThrough, Writable } from 'node:stream';
import { TransportError } from '@throughline/client';
import type { WireMessage } from '@throughline/client';
import { waitUntil } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { runBridge } from './bridge.ts';
import type { BridgeEnd, BridgeOptions, BridgeTransport } from './bridge.ts';
import { LineWriter } from './line-writer.ts';

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 'i',
  method: 'initialize',
  params: { protocolVersion: '2025-11-25' },
} as const;
const RESULT = { protocolVersion: '2025-11-25', capabilities: {} };

/** Takes what it is sent, and says what a test tells it to. */
class FakeTransport implements BridgeTransport {
  onmessage?: (message: WireMessage) => void;
  readonly sent: WireMessage[] = [];
  readonly versions: string[][] = [];
  terminations = 0;
  /** What becomes of a message. */
  take: (message: WireMessage) => Promise<void> = async (message) => {
    if (message.method === 'initialize') await this.say({ jsonrpc: '2.0', id: message.id, result: RESULT });
  };
  async start(): Promise<void> {
    await Promise.resolve();
  }
  async send(message: WireMessage): Promise<void> {
    this.sent.push(message);
    await this.take(message);
  }
  async terminateSession(): Promise<void> {
    this.terminations++;
    await Promise.resolve();
  }
  setSupportedProtocolVersions(versions: string[]): void {
    this.versions.push(versions);
  }
  /** Resolves when the bridge has handled it. */
  async say(message: WireMessage): Promise<void> {
    await (this.onmessage?.(message) as unknown);
  }
}

interface Rig {
  readonly transport: FakeTransport;
  readonly input: PassThrough;
  readonly stop: AbortController;
  readonly written: () => WireMessage[];
  readonly told: string[];
  readonly ended: Promise<BridgeEnd>;
  type(...messages: (object | string)[]): void;
}

function makeRig(more: Partial<BridgeOptions> = {}, output?: Writable): Rig {
  const transport = new FakeTransport();
  const input = new PassThrough();
  const stop = new AbortController();
  let text = '';
  const told: string[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  const ended = runBridge({
    transport,
    input,
    writer: new LineWriter(output ?? sink),
    startWithinMs: 30_000,
    lingerMs: 30_000,
    signal: stop.signal,
    tell: (line) => told.push(line),
    ...more,
  });
  return {
    transport,
    input,
    stop,
    told,
    ended,
    written: () =>
      text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as WireMessage),
    type(...messages) {
      for (const message of messages)
        input.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`);
    },
  };
}

const call = (id: number, more: object = {}): WireMessage => ({ jsonrpc: '2.0', id, method: 'tools/call', ...more });
const answer = (id: number): WireMessage => ({ jsonrpc: '2.0', id, result: {} });
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const until = async (condition: () => boolean): Promise<void> => {
  await expect.poll(condition, { timeout: 10_000, interval: 5 }).toBe(true);
};

describe('the bridge', () => {
  it('[CONNECT-THROUGH] messages go through as they are, in order, both ways', async () => {
    const rig = makeRig();
    const messages = [
      call(1, { params: { name: 'x', _meta: { progressToken: 'p', own: [1] } } }),
      { jsonrpc: '2.0', id: 'r', result: { role: 'assistant', more: { deep: null } } },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1, reason: 'no' } },
      { jsonrpc: '2.0', id: 's', error: { code: -1, message: 'declined', data: { a: 1 } } },
      call(2, { method: 'own/method' }),
    ];
    rig.type(INITIALIZE, ...messages);
    await until(() => rig.transport.sent.length === 6);
    expect(rig.transport.sent).toEqual([INITIALIZE, ...messages]);
    const said: WireMessage[] = [
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } },
      { jsonrpc: '2.0', id: 1, method: 'elicitation/create', params: { message: 'ü\u2028' } },
      { jsonrpc: '2.0', id: 's', method: 'sampling/createMessage', params: {} },
      answer(2),
    ];
    for (const message of said) await rig.transport.say(message);
    expect(rig.written().slice(1)).toEqual(said);
    rig.input.end();
    expect(await rig.ended).toEqual({ kind: 'closed' });
    expect(rig.told).toEqual([]);
  });

  it('[CONNECT-START] nothing else is sent before initialize is answered, and the revision is then fixed', async () => {
    const rig = makeRig();
    rig.transport.take = () => Promise.resolve();
    rig.type(INITIALIZE, { jsonrpc: '2.0', method: 'notifications/initialized' }, call(1));
    await until(() => rig.transport.sent.length === 1);
    await settled();
    expect(rig.transport.sent).toHaveLength(1);
    await rig.transport.say({ jsonrpc: '2.0', id: 'i', result: RESULT });
    await until(() => rig.transport.sent.length === 3);
    expect(rig.transport.versions).toEqual([['2025-11-25']]);
    rig.stop.abort();
    expect(await rig.ended).toEqual({ kind: 'stopped' });
  });

  it('[CONNECT-START] an initialize that is not answered in time, or refused on the way, is answered with an error and ends the bridge', async () => {
    const late = makeRig({ startWithinMs: 50 });
    late.transport.take = () => new Promise(() => undefined);
    late.type(INITIALIZE);
    expect(await late.ended).toMatchObject({ kind: 'no-session' });
    expect(late.written()).toMatchObject([{ id: 'i', error: { data: { type: 'TransportError', mayHaveRun: false } } }]);

    for (const data of [{ type: 'TransportError' }, { status: 401 }, { status: 404 }]) {
      const refused = makeRig();
      const error = { code: -32000, message: 'no', data };
      refused.transport.take = ({ id }) => refused.transport.say({ jsonrpc: '2.0', id, error });
      refused.type(INITIALIZE);
      expect(await refused.ended).toEqual({ kind: 'no-session', why: 'no' });
      expect(refused.written()).toMatchObject([{ id: 'i', error }]);
    }
  });

  it('[CONNECT-START] the error says what kept the answer away, as far as that is known, and what to do', async () => {
    const refused = { causeCode: 'ECONNREFUSED' };
    const cases: [Error | null, object, string][] = [
      [null, { code: 'NO_ANSWER' }, 'within 0.05 s; --start-within waits longer'],
      [
        new TransportError('UNREACHABLE', 'The server at http://a cannot be reached: ECONNREFUSED', refused),
        { code: 'UNREACHABLE', cause: 'ECONNREFUSED' },
        'within 0.05 s: The server at http://a cannot be reached: ECONNREFUSED: check the URL, and that the server runs',
      ],
      [
        new TransportError('HTTP_STATUS', 'The server answered 503'),
        { code: 'HTTP_STATUS' },
        ': The server answered 503',
      ],
    ];
    for (const [trouble, data, text] of cases) {
      const rig = makeRig({ startWithinMs: 50, trouble: () => trouble });
      rig.transport.take = () => new Promise(() => undefined);
      rig.type(INITIALIZE);
      const end = await rig.ended;
      const [answered] = rig.written();
      expect(answered).toMatchObject({
        id: 'i',
        error: { data: { type: 'TransportError', mayHaveRun: false, ...data } },
      });
      const { message } = answered?.error as { message: string };
      expect(message).toContain(text);
      expect(end).toEqual({ kind: 'no-session', why: message });
    }
  });

  it.each([null, [], 'text', undefined])(
    '[CONNECT-START] an initialize whose result is %j is answered with an error, and ends the bridge',
    async (result) => {
      const { transport, ended, written, type } = makeRig();
      transport.take = async (message) => {
        await transport.say({ jsonrpc: '2.0', id: message.id, result });
      };
      type(INITIALIZE);
      expect(await ended).toEqual({ kind: 'no-session', why: 'the server answered initialize with no result' });
      expect(written()).toMatchObject([{ id: 'i', error: { data: { type: 'TransportError' } } }]);
    },
  );

  it('[CONNECT-START] an initialize that waits for a person has time for that, and its refusal says what to do', async () => {
    let isWaiting = true;
    const { transport, ended, written, type } = makeRig({
      startWithinMs: 50,
      isWaiting: () => isWaiting,
      explain: () => 'log in',
    });
    const given = Promise.withResolvers<undefined>();
    transport.take = async (message) => {
      await given.promise;
      const error = { code: -32000, message: 'no', data: { type: 'TransportError', status: 401 } };
      await transport.say({ jsonrpc: '2.0', id: message.id, error });
    };
    type(INITIALIZE);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(written()).toEqual([]);
    isWaiting = false;
    given.resolve(undefined);
    expect(await ended).toEqual({ kind: 'no-session', why: 'no: log in' });
    expect(written()).toMatchObject([{ id: 'i', error: { message: 'no: log in' } }]);
  });

  it('[CONNECT-START] an error of the server itself is passed on, and the client may ask otherwise', async () => {
    const rig = makeRig();
    const { take } = rig.transport;
    rig.transport.take = ({ id }) =>
      rig.transport.say({ jsonrpc: '2.0', id, error: { code: -32602, message: 'which?', data: { supported: [] } } });
    rig.type(INITIALIZE);
    await until(() => rig.written().length === 1);
    rig.transport.take = take;
    rig.type({ ...INITIALIZE, id: 'j' });
    await until(() => rig.written().length === 2);
    expect(rig.written()[1]).toMatchObject({ id: 'j', result: RESULT });
    expect(rig.transport.terminations).toBe(1);
    rig.stop.abort();
    await rig.ended;
  });

  it('[CONNECT-STDIN] what is no message is answered and not sent', async () => {
    const rig = makeRig();
    rig.type(INITIALIZE, '{', '[]', '{"id":7,"method":"x"}', '{"jsonrpc":"2.0","id":8}', '', '  ');
    rig.input.write(Buffer.alloc(17 * 1024 * 1024, 'x'));
    rig.type('', call(9));
    await until(() => rig.transport.sent.length === 2);
    expect(rig.transport.sent[1]).toEqual(call(9));
    expect(
      rig
        .written()
        .slice(1)
        .map(({ id, error }) => [id, (error as { code: number }).code]),
    ).toEqual([
      [null, -32700],
      [null, -32600],
      [7, -32600],
      [8, -32600],
      [null, -32600],
    ]);
    rig.stop.abort();
    await rig.ended;
  });

  it('[CONNECT-BOUNDED] a client that does not read slows the streams down: a message is handled when its line is taken', async () => {
    const waiting: (() => void)[] = [];
    const slow = new Writable({
      highWaterMark: 1,
      write(_chunk, _encoding, done) {
        waiting.push(done);
      },
    });
    const rig = makeRig({}, slow);
    let handled = 0;
    const said = [1, 2, 3].map((id) => rig.transport.say(answer(id)).then(() => handled++));
    await settled();
    expect(handled).toBe(0);
    for (let id = 1; id <= 3; id++) {
      await until(() => waiting.length === id);
      waiting[id - 1]?.();
      await said[id - 1];
      expect(handled).toBe(id);
    }
    rig.stop.abort();
    await rig.ended;
  });

  it('[CONNECT-STDIN] a call with the id of one that is open is not sent, and does not end that one', async () => {
    const { transport, input, written, told, ended, type } = makeRig();
    type(INITIALIZE, { jsonrpc: '2.0', id: 1, method: 'a' }, { jsonrpc: '2.0', id: 1, method: 'b' });
    await waitUntil('the refusal', () => written().length === 2);
    expect(transport.sent.map(({ method }) => method)).toEqual(['initialize', 'a']);
    expect(written()[1]).toMatchObject({ id: null, error: { code: -32600 } });
    expect(told).toEqual(['Not sent: a call with the id 1 is open']);
    await transport.say({ jsonrpc: '2.0', id: 1, result: {} });
    type({ jsonrpc: '2.0', id: 1, method: 'c' });
    await waitUntil('the next', () => transport.sent.length === 3);
    input.end();
    await transport.say({ jsonrpc: '2.0', id: 1, result: {} });
    expect(await ended).toEqual({ kind: 'closed' });
  });

  it('[CONNECT-BOUNDED] calls above a thousand are answered with an error, and an answer makes room', async () => {
    const rig = makeRig();
    rig.type(INITIALIZE, ...Array.from({ length: 1001 }, (_, id) => call(id)));
    await until(() => rig.written().length === 2);
    expect(rig.written()[1]).toMatchObject({ id: 1000, error: { data: { mayHaveRun: false } } });
    await rig.transport.say(answer(5));
    rig.type(call(1001));
    await until(() => rig.transport.sent.at(-1)?.id === 1001);
    rig.type({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 6 } }, call(1002), call(1003));
    await until(() => rig.written().length === 4);
    expect(rig.written()[3]).toMatchObject({ id: 1003, error: { code: -32000 } });
    rig.stop.abort();
    await rig.ended;
  });

  it('[CONNECT-BOUNDED] while the server takes nothing, 256 messages are read ahead and no more, and the end of the input is seen', async () => {
    const rig = makeRig({ lingerMs: 20 });
    const { take } = rig.transport;
    rig.transport.take = (message) => (message.method === 'initialize' ? take(message) : new Promise(() => undefined));
    let pulled = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) {
        pulled++;
        yield Buffer.from('{"jsonrpc":"2.0","method":"notifications/x"}\n');
        await settled();
      }
    }
    const flooded = makeRig({ input: endless() });
    flooded.transport.take = () => new Promise(() => undefined);
    await until(() => pulled >= 256);
    for (let turn = 0; turn < 50; turn++) await settled();
    expect(pulled).toBe(256);
    flooded.stop.abort();
    await flooded.ended;

    rig.type(INITIALIZE, { jsonrpc: '2.0', method: 'notifications/x' }, call(1));
    rig.input.end();
    expect(await rig.ended).toEqual({ kind: 'closed' });
  });

  it('[CONNECT-CLOSE] answers that are due when stdin is closed are waited for, as long as --linger says', async () => {
    const rig = makeRig();
    rig.type(INITIALIZE, call(1));
    rig.input.end();
    await until(() => rig.transport.sent.length === 2);
    let hasEnded = false;
    void rig.ended.then(() => (hasEnded = true));
    await settled();
    expect(hasEnded).toBe(false);
    await rig.transport.say(answer(1));
    expect(await rig.ended).toEqual({ kind: 'closed' });

    const short = makeRig({ lingerMs: 30 });
    short.type(INITIALIZE, call(1));
    short.input.end();
    expect(await short.ended).toEqual({ kind: 'closed' });
  });

  it('[CONNECT-CLOSE] a client that leaves before initialize is answered had no session', async () => {
    const rig = makeRig({ lingerMs: 20 });
    rig.transport.take = () => new Promise(() => undefined);
    rig.type(INITIALIZE);
    rig.input.end();
    expect(await rig.ended).toMatchObject({ kind: 'no-session' });
  });

  it('[CONNECT-STDOUT] a client that has stopped reading ends the bridge', async () => {
    const rig = makeRig({}, new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) }));
    await rig.transport.say(answer(1));
    expect(await rig.ended).toEqual({ kind: 'output-lost' });
    await rig.transport.say(answer(2));
  });

  it('[CONNECT-TELLS] what the server did not take is told, and a call that could not be sent is answered', async () => {
    const rig = makeRig();
    const { take } = rig.transport;
    rig.transport.take = (message) =>
      message.method === 'initialize' ? take(message) : Promise.reject(new Error('it is gone'));
    rig.type(INITIALIZE, { jsonrpc: '2.0', id: 's', result: {} }, call(1));
    await until(() => rig.written().length === 2);
    expect(rig.written()[1]).toMatchObject({ id: 1, error: { message: 'it is gone' } });
    expect(rig.told).toEqual([
      'an answer to the server was not taken: it is gone',
      'tools/call of the client was not taken: it is gone',
    ]);
    rig.stop.abort();
    await rig.ended;
  });
});
