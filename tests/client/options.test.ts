import { readFileSync } from 'node:fs';
import { ResumableTransport, ResumptionRejected, TransportError } from '@throughline/client';
import type { ResumableTransportOptions } from '@throughline/client';
import { describe, expect, it } from 'vitest';
import { connectRig, note, result, SHORT } from './client-rig.ts';
import { json, ScriptedServer } from './scripted-server.ts';

const URL_TEXT = 'http://server.test/mcp';
const GUIDE = readFileSync(new URL('../../docs/guides/client.md', import.meta.url), 'utf8');

/** First cells of the table under a heading of the guide. */
function rowsUnder(heading: string): string[] {
  const section = GUIDE.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return [...section.matchAll(/^\| `([^`]+)` +\|/gm)].map(([, name = '']) => name);
}

function jsonServer(): ScriptedServer {
  const server = new ScriptedServer();
  server.answer = ({ method, message }) =>
    method === 'GET' ? new Response(null, { status: 405 }) : json(result(message.id));
  return server;
}

describe('options', () => {
  it.each<[options: Record<string, unknown>, words: string]>([
    [{ policy: 'lax' }, 'option policy must be one of strict, compatible'],
    [{ eventIds: 'numbers' }, 'option eventIds must be one of auto, consecutive, opaque'],
    [{ reinitialize: true }, 'option reinitialize must be one of auto, manual'],
    [{ silenceMs: 0 }, 'option silenceMs must be a number above 0'],
    [{ giveUpMs: -1 }, 'option giveUpMs must be'],
    [{ quietMs: Infinity }, 'option quietMs must be'],
    [{ connectTimeoutMs: NaN }, 'option connectTimeoutMs must be'],
    [{ maxDelayMs: 2 ** 31 }, 'option maxDelayMs must be'],
  ])('[CLIENT-OPTIONS] %j is refused: %s', (options, words) => {
    expect(() => new ResumableTransport(URL_TEXT, options as ResumableTransportOptions)).toThrow(words);
  });

  it('[CLIENT-OPTIONS] a URL that is none is refused', () => {
    expect(() => new ResumableTransport('mcp')).toThrow(TypeError);
  });

  it('[CLIENT-OPTIONS] a message that is none, a resumption token and a second start are refused', async () => {
    const rig = await connectRig({}, jsonServer());
    await expect(rig.transport.send({ jsonrpc: '2.0' })).rejects.toThrow(TypeError);
    const message = { jsonrpc: '2.0', id: 1, method: 'ping' } as const;
    await expect(rig.transport.send(message, { resumptionToken: 'x' })).rejects.toThrow('resumptionToken');
    await expect(rig.transport.start()).rejects.toThrow('started before');
  });
});

describe('credentials', () => {
  it('[CLIENT-AUTH] headers are asked for before each request, and the headers of a message go with it', async () => {
    const server = jsonServer();
    let count = 0;
    const rig = await connectRig({ headers: async () => ({ Authorization: `Bearer ${++count}` }) }, server);
    await rig.transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' }, { headers: { 'Mcp-Param-X': 'y' } });
    await rig.answer(1);
    const told = server.asked.map(({ headers }) => headers.get('authorization'));
    expect([...told].sort()).toEqual(['Bearer 1', 'Bearer 2', 'Bearer 3', 'Bearer 4'].slice(0, told.length));
    expect(server.of('ping')[0]?.headers.get('mcp-param-x')).toBe('y');
  });

  it('[CLIENT-AUTH] a refusal for want of credentials is asked about once, and the request sent again with new ones', async () => {
    const server = jsonServer();
    const { answer } = server;
    server.answer = (asked) =>
      asked.headers.get('authorization') === 'Bearer new' ? answer(asked) : new Response(null, { status: 401 });
    let token = 'old';
    const statuses: number[] = [];
    const rig = await connectRig(
      {
        headers: () => ({ Authorization: `Bearer ${token}` }),
        onUnauthorized: async ({ status }) => {
          statuses.push(status);
          token = 'new';
          return true;
        },
      },
      server,
    );
    expect((await rig.call(1)).result).toEqual({ ok: true });
    expect(statuses.length).toBeGreaterThan(0);
    expect((await rig.call(2)).result).toEqual({ ok: true });
  });

  it('[CLIENT-AUTH] whoever gives new credentials is told what was sent, so that an older refusal is not taken for a new one', async () => {
    const server = jsonServer();
    const { answer } = server;
    server.answer = (asked) =>
      asked.headers.get('authorization') === 'Bearer old' ? new Response(null, { status: 401 }) : answer(asked);
    const refused: (string | null)[] = [];
    let token = 'old';
    const rig = await connectRig(
      {
        headers: () => ({ Authorization: `Bearer ${token}` }),
        onUnauthorized: async (_answer, sent) => {
          refused.push(sent.get('authorization'));
          token = 'new';
          return true;
        },
      },
      server,
    );
    await rig.call(1);
    expect(new Set(refused)).toEqual(new Set(['Bearer old']));
  });

  it('[CLIENT-AUTH] credentials that cannot be had now are asked for again until they can: the call is not lost, nor its place', async () => {
    const server = new ScriptedServer();
    let isLocked = false;
    server.answer = ({ method, headers }) => {
      if (isLocked) return new Response(null, { status: 401 });
      if (method === 'POST') {
        isLocked = true;
        return server.sse().event('a', note('first')).cut();
      }
      return headers.has('last-event-id') ? server.sse().event('b', result(1)) : new Response(null, { status: 405 });
    };
    let tries = 0;
    const rig = await connectRig(
      {
        policy: 'compatible',
        onUnauthorized: async () => {
          if (++tries < 3) throw new Error('the identity provider is away');
          isLocked = false;
          return true;
        },
      },
      server,
    );
    expect((await rig.call(1)).result).toEqual({ ok: true });
    expect(tries).toBe(3);
    expect(rig.errors.map(({ code }) => code)).toContain('CREDENTIALS');
    expect(rig.lost).toEqual([]);
  });

  it('[CLIENT-AUTH] a resume that is not let in is tried again: the session and its place stay for whoever logs in later', async () => {
    const server = new ScriptedServer();
    let isLocked = false;
    server.answer = ({ method, headers, message }) => {
      if (isLocked) return new Response(null, { status: 401 });
      if (method === 'GET' && headers.has('last-event-id')) return server.sse().event('b', result(1));
      if (method === 'GET') return new Response(null, { status: 405 });
      if (message.id === 2) return json(result(2));
      isLocked = true;
      return server.sse().event('a', note('first')).cut();
    };
    let asked = 0;
    const onUnauthorized = (): Promise<boolean> => {
      asked++;
      return Promise.resolve(false);
    };
    const rig = await connectRig({ policy: 'compatible', onUnauthorized }, server);
    const first = rig.call(1);
    await server.until('GET', 3);
    // Meanwhile others are told at once, and that they have not run.
    expect((await rig.call(2)).error?.data).toMatchObject({ code: 'HTTP_STATUS', status: 401, mayHaveRun: false });
    rig.got.length = 0;
    isLocked = false;
    expect((await first).result).toEqual({ ok: true });
    expect((await rig.call(2)).result).toEqual({ ok: true });
    expect(asked).toBeGreaterThan(1);
    expect([server.sessions, rig.lost]).toEqual([1, []]);
  });

  it('[CLIENT-AUTH] a resume that is never let in fails the call, which may have run, and not the session', async () => {
    const server = new ScriptedServer();
    server.answer = ({ method, message }) =>
      method === 'GET'
        ? new Response(null, { status: 401 })
        : message.id === 1
          ? server.sse().event('a', note('first')).cut()
          : json(result(message.id));
    const rig = await connectRig({ policy: 'compatible', ...SHORT }, server);
    expect((await rig.call(1)).error?.data).toMatchObject({ code: 'HTTP_STATUS', status: 401, mayHaveRun: true });
    expect((await rig.call(2)).result).toEqual({ ok: true });
    expect([server.sessions, rig.lost]).toEqual([1, []]);
  });

  it('[CLIENT-AUTH] credentials that cannot be had before the deadline fail the call, which was not run', async () => {
    const server = jsonServer();
    server.answer = () => new Response(null, { status: 401 });
    const rig = await connectRig({ ...SHORT, onUnauthorized: () => Promise.reject(new Error('away')) }, server);
    expect((await rig.call(1)).error?.data).toMatchObject({ code: 'CREDENTIALS', mayHaveRun: false });
  });

  it('[CLIENT-AUTH] a call that waits for credentials ends when the transport is closed', async () => {
    const server = jsonServer();
    server.answer = () => new Response(null, { status: 401 });
    const rig = await connectRig({ onUnauthorized: () => Promise.withResolvers<boolean>().promise }, server);
    await rig.transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} });
    await server.until('tools/call');
    await rig.transport.close();
    expect(rig.got).toEqual([]);
  });

  it('[CLIENT-AUTH] without a way to get credentials the call fails, and was not run', async () => {
    const server = jsonServer();
    server.answer = () => new Response(null, { status: 401 });
    const rig = await connectRig({}, server);
    expect((await rig.call(1)).error?.data).toMatchObject({ code: 'HTTP_STATUS', status: 401, mayHaveRun: false });
  });
});

describe('the two families of errors', () => {
  it('[CLIENT-ERRORS] are told apart by name and code, and say what can be said', () => {
    const error = new TransportError('HTTP_STATUS', 'text', { status: 503, retryAfterMs: 5 });
    expect(error).toBeInstanceOf(Error);
    expect({ ...error, name: error.name }).toMatchObject({
      name: 'TransportError',
      code: 'HTTP_STATUS',
      status: 503,
      retryAfterMs: 5,
    });
    const rejected = new ResumptionRejected('gap', 'detail', { sessionId: 'S', lastEventId: '7' });
    expect({ ...rejected, name: rejected.name }).toMatchObject({
      name: 'ResumptionRejected',
      code: 'RESUMPTION_REJECTED',
      reason: 'gap',
      action: 'reinitialize',
      sessionId: 'S',
      lastEventId: '7',
    });
    expect(rejected).not.toBeInstanceOf(TransportError);
  });

  it('[CLIENT-ERRORS] the guide names every code and every reason, and no other', () => {
    expect(rowsUnder('What a transport error says').sort()).toEqual(
      ['CLOSED', 'CREDENTIALS', 'HTTP_STATUS', 'NOT_MCP', 'NO_ANSWER', 'SILENT', 'STORE', 'UNREACHABLE'].sort(),
    );
    expect(rowsUnder('Why a resume is rejected').sort()).toEqual(
      [
        'beyond-end',
        'cursor-foreign',
        'cursor-malformed',
        'diverged',
        'epoch-mismatch',
        'foreign-event',
        'gap',
        'malformed-id',
        'replay-reset',
        'session-changed',
        'session-ended',
        'session-invalid',
        'unproven',
      ].sort(),
    );
  });

  it('[CLIENT-OPTIONS] the guide names every option with its default', () => {
    const source = readFileSync(new URL('../../libs/client/src/options.ts', import.meta.url), 'utf8');
    const block = source.split('export interface ResumableTransportOptions {')[1]?.split('\n}')[0] ?? '';
    const names = [...block.matchAll(/^ {2}(?:readonly )?(\w+)\??[(:?]/gm)].map(([, name = '']) => name);
    expect(names.length).toBeGreaterThan(15);
    expect(rowsUnder('Options').sort()).toEqual(names.sort());
  });
});
