import { checkStream, RawClient, SseParser, waitUntil } from '@throughline/testkit/processes';
import type { SseItem } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { startFaultyServer } from './faulty-server.ts';
import { callForChunks, idsOf, playCall, textsOf } from './wire-rig.ts';

const EVENTS = [1, 2, 3, 4, 5, 6].map((n) => `event ${n}: naïve 漢字 ✓`);
const ALL = [...EVENTS, 'counted to 6'];
const HAN = Buffer.from('漢');

function parse(chunks: readonly Uint8Array[]): SseItem[] {
  const items: SseItem[] = [];
  const parser = new SseParser((item) => items.push(item));
  for (const chunk of chunks) parser.push(chunk);
  return items;
}

describe.each(['throughline', 'numbered', 'opaque'] as const)('lies on an open stream, dialect %s', (dialect) => {
  it('[LIAR-WIRE] cut-utf8: one chunk ends inside a character, and the text is whole', async () => {
    await using server = await startFaultyServer({ dialect, fault: 'cut-utf8' });
    const chunks = await callForChunks(server);
    const cuts = chunks.filter((chunk) => chunk.at(-1) === HAN[0]);
    expect(cuts).toHaveLength(1);
    expect(textsOf(parse(chunks))).toEqual(ALL);
  });

  it('[LIAR-WIRE] truncated-utf8: one byte is gone, in one event', async () => {
    await using server = await startFaultyServer({ dialect, fault: 'truncated-utf8' });
    const chunks = await callForChunks(server);
    const texts = textsOf(parse(chunks));
    expect(texts).toEqual(ALL.map((text) => (text === EVENTS[3] ? text.replace('漢', '\ufffd') : text)));
    expect(() => new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))).toThrow(TypeError);
  });

  it('[LIAR-WIRE] crlf: every line, and once CR and LF come apart', async () => {
    await using server = await startFaultyServer({ dialect, fault: 'crlf' });
    const chunks = await callForChunks(server);
    const text = Buffer.concat(chunks).toString();
    expect(text.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
    expect(chunks.filter((chunk) => chunk.at(-1) === 0x0d)).toHaveLength(1);
    expect(textsOf(parse(chunks))).toEqual(ALL);
  });

  it('[LIAR-WIRE] bom: the stream begins with EF BB BF', async () => {
    await using server = await startFaultyServer({ dialect, fault: 'bom' });
    const bytes = Buffer.concat(await callForChunks(server));
    expect(bytes.subarray(0, 3)).toEqual(Buffer.from([0xef, 0xbb, 0xbf]));
    expect(bytes.subarray(3).includes(Buffer.from([0xef, 0xbb, 0xbf]))).toBe(false);
    expect(textsOf(parse([bytes]))).toEqual(ALL);
  });

  it('[LIAR-WIRE] no-final-newline: the last line is not ended, so its event is not dispatched', async () => {
    await using played = await playCall('no-final-newline', dialect);
    expect(await played.call.closed).toBe('end');
    expect(textsOf(played.call.items)).toEqual(EVENTS);
    expect(textsOf((await played.resume()).items)).toEqual(['counted to 6']);
    await using server = await startFaultyServer({ dialect, fault: 'no-final-newline' });
    const bytes = Buffer.concat(await callForChunks(server)).toString();
    expect(bytes).toMatch(/data: \{"jsonrpc":"2.0","id":7,"result":.*\}$/);
  });

  it('[LIAR-WIRE] retry-directive: 400 ms, before the end of the connection', async () => {
    await using played = await playCall('retry-directive', dialect);
    expect(played.call.items.at(-1)).toEqual({ kind: 'event', data: '', retryMs: 400 });
    expect(textsOf((await played.resume()).items)).toEqual(ALL.slice(3));
  });

  it('[LIAR-WIRE] silent-stream: keepalives come before, nothing comes after, and the connection stays', async () => {
    await using server = await startFaultyServer({ dialect, fault: 'silent-stream', keepAliveMs: 20 });
    const client = await RawClient.connect(server.url);
    const quiet = await client.listen(server.url);
    const call = await client.callTool(server.url, 'count', { to: 6 }, 7);
    await waitUntil('the lie', () => server.liedAtMs() !== null);
    const before = call.items.length;
    const keepalives = (): number => quiet.items.filter(({ data }) => data === 'keepalive').length;
    await waitUntil('keepalives on another stream', () => keepalives() > 5);
    expect(call.items.slice(before).filter(({ kind }) => kind === 'comment')).toEqual([]);
    expect(textsOf(call.items)).toEqual(EVENTS.slice(0, 3));
    expect(await Promise.race([call.closed, Promise.resolve('open')])).toBe('open');
    const resumed = await client.resume(server.url, idsOf(call.items).at(-1) ?? '');
    await resumed.closed;
    expect(textsOf(resumed.items)).toEqual(ALL.slice(3));
  });

  it('[LIAR-WIRE] answer-on-wrong-stream: a false result on the standalone stream, then the true one', async () => {
    await using server = await startFaultyServer({ dialect, fault: 'answer-on-wrong-stream' });
    const client = await RawClient.connect(server.url);
    const standalone = await client.listen(server.url);
    const call = await client.callTool(server.url, 'count', { to: 6 }, 7);
    await call.closed;
    expect(textsOf(standalone.items)).toEqual(['a result on the wrong stream']);
    expect(JSON.parse(standalone.events()[0]?.data ?? '')).toMatchObject({ id: 7 });
    expect(textsOf(call.items)).toEqual(ALL);
    const wrong = server.sent.findIndex(({ data }) => data.includes('wrong stream'));
    expect(server.sent.slice(wrong + 1).map(({ data }) => data)).toEqual(
      call
        .events()
        .slice(3)
        .map(({ data }) => data),
    );
  });
});

describe('what the ids of Throughline prove of a stream', () => {
  it('[LIAR-DIALECT] the chain does not follow from a character that was cut off; of harmless forms it does', async () => {
    const session = (server: { requests: readonly { sessionId: string | undefined }[] }): string =>
      server.requests.at(-1)?.sessionId ?? '';
    for (const fault of ['cut-utf8', 'crlf', 'bom'] as const) {
      await using server = await startFaultyServer({ fault });
      const items = parse(await callForChunks(server));
      expect(checkStream(session(server), items)).toHaveLength(7);
    }
    await using server = await startFaultyServer({ fault: 'truncated-utf8' });
    const items = parse(await callForChunks(server));
    expect(() => checkStream(session(server), items)).toThrow('the chain is not that of the messages received');
  });
});

describe('the moment', () => {
  it.each([0, 1, 5])('[LIAR-ONE] after %d messages, on the stream that is named', async (after) => {
    await using played = await playCall('reordered', 'throughline', { at: { after } });
    expect(textsOf(played.call.items)).toEqual(ALL.slice(0, after));
    const [first = '', second = '', ...rest] = ALL.slice(after);
    expect(textsOf((await played.resume()).items)).toEqual([second, first, ...rest]);
  });

  it('[LIAR-ONE] on the standalone stream calls are left alone', async () => {
    await using server = await startFaultyServer({ fault: 'altered-boundary', at: { stream: 'standalone', after: 2 } });
    const client = await RawClient.connect(server.url);
    const standalone = await client.listen(server.url);
    const call = await client.callTool(server.url, 'count', { to: 6 });
    await call.closed;
    expect(textsOf(call.items)).toEqual(ALL);
    await (
      await client.callTool(server.url, 'announce', { to: 4 })
    ).closed;
    await standalone.closed;
    expect(textsOf(standalone.items)).toEqual(EVENTS.slice(0, 2));
    const resumed = await client.resume(server.url, standalone.lastId() ?? '');
    await resumed.until('the last event', ({ data }) => data.includes('event 4'));
    expect(textsOf(resumed.items)).toEqual(['altered event', EVENTS[2], EVENTS[3]]);
  });

  it('[LIAR-ONE] a resume of another stream sees no fault', async () => {
    await using played = await playCall('replay-from-zero', 'throughline');
    const { client, server } = played;
    const other = await client.callTool(server.url, 'count', { to: 2 });
    await other.closed;
    const resumed = await client.resume(server.url, idsOf(other.items)[0] ?? '');
    await resumed.closed;
    expect(textsOf(resumed.items)).toEqual([EVENTS[1], 'counted to 2']);
    expect(server.liedAtMs()).toBeNull();
  });

  it('[LIAR-ONE] a second call of the tool sees no fault', async () => {
    await using played = await playCall('replay-from-zero', 'throughline');
    const second = await played.client.callTool(played.server.url, 'count', { to: 6 });
    await second.closed;
    expect(textsOf(second.items)).toEqual(ALL);
  });

  it('[LIAR-ONE] a fault, a dialect and a moment that do not exist are refused by name', async () => {
    await expect(startFaultyServer({ fault: 'gap' as never })).rejects.toThrow('fault "gap" is not in FAULT_TABLE');
    await expect(startFaultyServer({ dialect: 'sdk' as never })).rejects.toThrow(
      'dialect must be one of throughline, numbered, opaque',
    );
    await expect(startFaultyServer({ at: { after: -1 } })).rejects.toThrow('at.after is a number of messages');
  });
});
