import { systemClock } from '@throughline/log';
import { silentLogger } from '@throughline/telemetry';
import { afterEach, describe, expect, it } from 'vitest';
import type { McpHost } from './host.ts';
import { createFixtureServer as createV1 } from './testing/fixture-v1.ts';
import { createFixtureServer as createV2 } from './testing/fixture-v2.ts';
import { createRecordingLogger, kindsOf, openDriver, textOf } from './testing/host-driver.ts';
import { answerHandshake, sendJson, sendSse, serveScripted } from './testing/scripted-server.ts';
import type { Answer, ScriptedServer } from './testing/scripted-server.ts';
import { serveOverSdkHttp } from './testing/sdk-http-server.ts';
import type { SdkHttpServer, SdkHttpServerOptions } from './testing/sdk-http-server.ts';
import type { UpstreamLimits } from './upstream-context.ts';
import { createUpstreamHost } from './upstream-host.ts';

const opened: { close(): Promise<void> }[] = [];
const FAST: Partial<UpstreamLimits> = { reconnect: { initialMs: 20, maxMs: 100 }, cancelGraceMs: 50, lingerMs: 50 };

function hostOf(url: string, limits: Partial<UpstreamLimits> = {}, headers: Record<string, string> = {}): McpHost {
  const host = createUpstreamHost(
    { url, headers },
    { logger: silentLogger, clock: systemClock },
    { ...FAST, ...limits },
  );
  opened.push(host);
  return host;
}

async function scripted(answer: Answer): Promise<ScriptedServer> {
  const server = await serveScripted((request, response) => {
    if (!answerHandshake(request, response)) answer(request, response);
  });
  opened.push(server);
  return server;
}

afterEach(async () => {
  // Hosts were opened after their servers: they say goodbye first.
  for (const one of opened.splice(0).reverse()) await one.close();
});

const result = (id: unknown, value = 'ok'): string =>
  JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: value }] } });
const note = (n: number): string => JSON.stringify({ jsonrpc: '2.0', method: 'n', params: { n } });

describe.each(['v1', 'v2'])('an upstream host before an official SDK %s server', (line) => {
  const serve = async (options: SdkHttpServerOptions = {}): Promise<SdkHttpServer> => {
    const server = await serveOverSdkHttp(line === 'v1' ? { v1: createV1 } : { v2: createV2 }, options);
    opened.push(server);
    return server;
  };

  it('[HOST-UPSTREAM-SDK] [HOST-RELATED] calls, progress on its call, questions and answers', async () => {
    const upstream = await serve();
    const driver = await openDriver(hostOf(upstream.url));
    expect((await driver.initialize())['serverInfo']).toMatchObject({ name: `fixture-${line}` });
    expect(await driver.call('countdown', { from: 200 }, { progressToken: 'p' })).toBe('done 200');
    const items = driver.received.filter((item) => item.related === 'c2');
    const steps = items
      .slice(0, -1)
      .map(({ message }) => ('method' in message ? message.params?.['progress'] : undefined));
    expect(steps).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
    expect(items.at(-1)?.message).toHaveProperty('result');
    // The SDK sends these questions on its standalone stream: they come unrelated.
    expect(await driver.call('ask', { question: '?' })).toBe('accept {"answer":"42"}');
    expect(await driver.call('sample', { prompt: 'p' })).toBe('{"type":"text","text":"sampled"}');
  });

  it('[HOST-UPSTREAM-SDK] [HOST-UPSTREAM-STANDALONE] gets what belongs to no call over the standalone stream', async () => {
    // Without an event store the SDK drops what it says before that stream is open.
    const upstream = await serve({ hasEventStore: false });
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    await driver.call('notify', { text: 'hello' });
    const item = await driver.waitFor(
      ({ message }) => 'method' in message && message.method === 'notifications/message',
    );
    expect(item).toMatchObject({ message: { params: { data: 'hello' } }, related: undefined });
  });

  it('[HOST-UPSTREAM-SDK] reads JSON answers', async () => {
    const upstream = await serve({ isJson: true });
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    expect(await driver.call('echo', { text: 'ä' })).toBe('ä');
  });

  it('[HOST-UPSTREAM-RESUME] a call goes on over cut connections with no message lost or repeated', async () => {
    const upstream = await serve();
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    const done = driver.call('countdown', { from: 40, intervalMs: 10 }, { progressToken: 'p' });
    for (const step of [5, 12, 25]) {
      await driver.waitFor(({ message }) => 'method' in message && message.params?.['progress'] === step);
      upstream.cutConnections();
    }
    expect(await done).toBe('done 40');
    const items = driver.received.filter((item) => item.related === 'c2');
    const steps = items
      .slice(0, -1)
      .map(({ message }) => ('method' in message ? message.params?.['progress'] : undefined));
    expect(steps).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
    expect(
      upstream.requests.filter(({ method, headers }) => method === 'GET' && headers['last-event-id']).length,
    ).toBeGreaterThanOrEqual(3);
  });

  it('[HOST-UPSTREAM-RESUME] a stream that the upstream closes for polling is taken up again', async () => {
    const upstream = await serve();
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    expect(await driver.call('close_stream')).toBe('closed');
  });

  it('[HOST-UPSTREAM-STANDALONE] the standalone stream comes back after a cut, without what was sent in between being lost', async () => {
    const upstream = await serve();
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    await driver.call('notify', { text: 'one' });
    await driver.waitFor(({ message }) => 'method' in message && message.params?.['data'] === 'one');
    upstream.cutConnections();
    await driver.call('notify', { text: 'two' });
    await driver.waitFor(({ message }) => 'method' in message && message.params?.['data'] === 'two');
    await driver.call('notify', { text: 'three' });
    await driver.waitFor(({ message }) => 'method' in message && message.params?.['data'] === 'three');
    expect(
      driver.received
        .filter(({ message }) => 'method' in message)
        .map(({ message }) => 'method' in message && message.params?.['data']),
    ).toEqual(['one', 'two', 'three']);
  });

  it('[HOST-UPSTREAM-ANSWER] without event ids a cut connection is an error of that call at once, not a hang', async () => {
    const upstream = await serve({ hasEventStore: false });
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    const params = { name: 'countdown', arguments: { from: 100, intervalMs: 10 }, _meta: { progressToken: 1 } };
    const done = driver.request('tools/call', params);
    await driver.waitFor((item) => item.related === 'c2');
    upstream.cutConnections();
    expect((await done).error).toMatchObject({
      code: -32603,
      data: { code: 'SERVER_FAILED', reason: 'upstream-stream-lost' },
    });
    expect(driver.goneReasons).toEqual([]);
    expect(await driver.call('echo', { text: 'still there' })).toBe('still there');
  });

  it('[HOST-UPSTREAM-LOST] a session that the upstream forgot is gone, once', async () => {
    const upstream = await serve();
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    upstream.forgetSessions();
    const params = { name: 'echo', arguments: { text: 'x' } };
    await driver.session.deliver({ jsonrpc: '2.0', id: 9, method: 'tools/call', params }, { canPoll: true });
    expect(await driver.waitGone()).toMatch(/upstream session lost/);
    await expect(driver.call('echo', { text: 'x' })).rejects.toMatchObject({ code: 'HOST_GONE' });
    expect(driver.goneReasons).toHaveLength(1);
  });

  it('[HOST-UPSTREAM-LOST] a session that is lost while a call runs is gone as soon as its stream is resumed', async () => {
    const upstream = await serve();
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    const params = { name: 'countdown', arguments: { from: 100, intervalMs: 10 }, _meta: { progressToken: 1 } };
    await driver.session.deliver({ jsonrpc: '2.0', id: 9, method: 'tools/call', params }, { canPoll: true });
    await driver.waitFor((item) => item.related === 9);
    upstream.forgetSessions();
    upstream.cutConnections();
    expect(await driver.waitGone()).toMatch(/upstream session lost/);
  });

  it('[HOST-UPSTREAM-LOGIN] user and password of the URL are sent as Basic authorization, and a configured header wins', async () => {
    const upstream = await serve();
    const sent = async (headers: Record<string, string>): Promise<unknown> => {
      const before = upstream.requests.length;
      const url = upstream.url.replace('//', '//us%40er:pass@');
      await (await openDriver(hostOf(url, {}, headers))).initialize();
      // The one before may still open its standalone stream.
      const first = upstream.requests.slice(before).find(({ headers: of }) => of['mcp-session-id'] === undefined);
      return first?.headers['authorization'];
    };
    expect(await sent({})).toBe(`Basic ${Buffer.from('us@er:pass').toString('base64')}`);
    expect(await sent({ Authorization: 'Bearer x' })).toBe('Bearer x');
  });

  it('[HOST-UPSTREAM-DELETE] close ends the session at the upstream', async () => {
    const upstream = await serve();
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    expect(upstream.openSessions()).toBe(1);
    await driver.session.close();
    expect(upstream.openSessions()).toBe(0);
    expect(driver.goneReasons).toEqual([]);
  });

  it('[HOST-UPSTREAM-CANCEL] a cancel reaches the running call, frees its connection and needs no answer', async () => {
    const upstream = await serve();
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    const params = { name: 'countdown', arguments: { from: 1000, intervalMs: 10 } };
    await driver.session.deliver({ jsonrpc: '2.0', id: 9, method: 'tools/call', params }, { canPoll: true });
    await driver.notify('notifications/cancelled', { requestId: 9 });
    expect(await driver.call('countdown', { from: 10, intervalMs: 10 })).toBe('done 10');
    expect(driver.received.filter(({ message }) => 'id' in message && message.id === 9)).toEqual([]);
  });
});

describe('an upstream host', () => {
  it('[HOST-UPSTREAM-HEADERS] sends the configured headers, session and version, and nothing else of its own accord', async () => {
    const upstream = await scripted(({ message }, response) => {
      sendJson(response, JSON.parse(result(message['id'])));
    });
    const headers = {
      Authorization: 'Bearer configured',
      'X-Team': 'a',
      'Mcp-Session-Id': 'forged',
      Accept: 'text/html',
    };
    const driver = await openDriver(hostOf(upstream.url, {}, headers));
    await driver.initialize();
    await driver.call('x');
    const [first, , third] = upstream.requests.filter(({ method }) => method === 'POST');
    expect(first?.headers).toMatchObject({
      authorization: 'Bearer configured',
      'x-team': 'a',
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    });
    expect(first?.headers).not.toHaveProperty('mcp-protocol-version');
    expect(third?.headers).toMatchObject({ 'mcp-session-id': 'up-1', 'mcp-protocol-version': '2025-11-25' });
  });

  it('[HOST-UPSTREAM-ANSWER] an upstream that cannot be reached is an error of initialize', async () => {
    const server = await serveScripted(() => undefined);
    await server.close();
    const driver = await openDriver(hostOf(server.url));
    const response = await driver.request('initialize', {});
    expect(response.error).toMatchObject({
      code: -32603,
      data: { code: 'SERVER_FAILED', reason: 'upstream-unreachable', mayHaveRun: false },
    });
    expect(response.error?.message).toMatch(/cannot be reached \(.*ECONNREFUSED/);
  });

  it('[HOST-UPSTREAM-ANSWER] an upstream that never answers initialize is an error after the time for it', async () => {
    const server = await serveScripted(() => undefined);
    opened.push(server);
    const driver = await openDriver(hostOf(server.url, { initializeMs: 50 }));
    expect((await driver.request('initialize', {})).error).toMatchObject({ data: { reason: 'upstream-timeout' } });
  });

  it.each<[string, Answer, string]>([
    ['never answers', () => undefined, 'upstream-timeout'],
    [
      'sends its headers and nothing more',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
      },
      'upstream-stream-lost',
    ],
    [
      'sends a part of its answer and nothing more',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).write('{"jsonrpc"');
      },
      'upstream-stream-lost',
    ],
    [
      'opens a stream and says nothing on it',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      },
      'upstream-stream-lost',
    ],
    [
      'answers with an error status and no body',
      (_, response) => {
        response.writeHead(500, { 'content-length': '10' }).flushHeaders();
      },
      'upstream-status',
    ],
  ])(
    '[HOST-UPSTREAM-SILENT] one that %s fails the call after its time, and it may have run',
    async (_, answer, reason) => {
      const server = await scripted(answer);
      const driver = await openDriver(hostOf(server.url, { silenceMs: 200 }));
      await driver.initialize();
      const startedMs = performance.now();
      const response = await driver.request('tools/call', { name: 'x' });
      expect(response.error).toMatchObject({ data: { code: 'SERVER_FAILED', reason, mayHaveRun: true } });
      expect(performance.now() - startedMs).toBeGreaterThan(150);
    },
  );

  it.each<[string, Answer, string, RegExp]>([
    ['status 500', (_, response) => response.writeHead(500).end('oops'), 'upstream-status', /status 500/],
    ['status 401', (_, response) => response.writeHead(401).end(), 'upstream-status', /credentials/],
    [
      'a redirect',
      (_, response) => response.writeHead(307, { location: '/mcp/' }).end(),
      'upstream-status',
      /redirects to \/mcp\//,
    ],
    ['status 202', (_, response) => response.writeHead(202).end(), 'upstream-bad-answer', /202/],
    [
      'HTML',
      (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
      'upstream-bad-answer',
      /text\/html/,
    ],
    [
      'broken JSON',
      (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{'),
      'upstream-bad-answer',
      /not JSON-RPC/,
    ],
    [
      'the answer to another request',
      (_, response) => {
        sendJson(response, JSON.parse(result('other')));
      },
      'upstream-bad-answer',
      /without a response/,
    ],
    [
      'an oversized answer',
      (_, response) => {
        sendJson(response, JSON.parse(result('c2', 'x'.repeat(200_000))));
      },
      'upstream-bad-answer',
      /more than 100000 bytes/,
    ],
    [
      'an oversized event',
      (_, response) => {
        sendSse(response, [result('c2', 'x'.repeat(200_000))]);
      },
      'upstream-bad-answer',
      /more than 100000 characters/,
    ],
    [
      'a JSON answer that breaks off',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
        response.write('{"a"');
        setTimeout(() => response.destroy(), 10);
      },
      'upstream-stream-lost',
      /broke off/,
    ],
    [
      'a stream without ids that ends',
      (_, response) => {
        sendSse(response, [note(1)]);
        response.end();
      },
      'upstream-stream-lost',
      /cannot be resumed.*may have run/,
    ],
  ])('[HOST-UPSTREAM-ANSWER] %s is a JSON-RPC error of the call that says so', async (_, answer, reason, text) => {
    const upstream = await scripted((request, response) => {
      if (request.method === 'POST') answer(request, response);
      else response.writeHead(405).end();
    });
    const driver = await openDriver(hostOf(upstream.url, { maxMessageSize: 100_000 }));
    await driver.initialize();
    const response = await driver.request('tools/call', { name: 'x' });
    expect(response.error).toMatchObject({ code: -32603, data: { code: 'SERVER_FAILED', reason } });
    expect(response.error?.message).toMatch(text);
    expect(driver.received.filter(({ message }) => 'id' in message && message.id === 'c2')).toHaveLength(1);
  });

  it("[HOST-UPSTREAM-ANSWER] the upstream's own JSON-RPC error in a 4xx is passed on under the id of the call", async () => {
    const upstream = await scripted(({ method }, response) => {
      const error = { code: -32000, message: 'Bad Request: no' };
      response.writeHead(method === 'POST' ? 400 : 405).end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
    });
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    expect(await driver.request('tools/call', { name: 'x' })).toEqual({
      jsonrpc: '2.0',
      id: 'c2',
      error: { code: -32000, message: 'Bad Request: no' },
    });
  });

  it('[HOST-UPSTREAM-RETRY] waits as long as retry: says before it resumes, and from the last id', async () => {
    const upstream = await scripted(({ method, headers }, response) => {
      if (method === 'POST') {
        sendSse(response, ['e1|', `e2|${note(1)}`]);
        response.write('retry: 300\n\n');
        response.end();
      } else if (headers['last-event-id'] === undefined) {
        response.writeHead(405).end();
      } else {
        sendSse(response, [`e3|${note(2)}`, `e4|${result('c2')}`]);
        response.end();
      }
    });
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    expect(await driver.call('x')).toBe('ok');
    expect(kindsOf(driver.received.filter((item) => item.related === 'c2'))).toEqual(['n', 'n', 'response']);
    const resumed = upstream.requests.find(({ headers }) => headers['last-event-id'] !== undefined);
    const posted = upstream.requests.find(({ message }) => message['id'] === 'c2');
    expect(resumed?.headers['last-event-id']).toBe('e2');
    expect((resumed?.atMs ?? 0) - (posted?.atMs ?? 0)).toBeGreaterThanOrEqual(295);
  });

  it.each<[string, Answer, number, RegExp]>([
    ['refuses with 400', (_, response) => response.writeHead(400).end(), 1, /refused to resume.*400/],
    ['fails with 503 each time', (_, response) => response.writeHead(503).end(), 3, /status 503/],
    [
      'gives an empty stream each time',
      (_, response) => {
        sendSse(response, []);
        response.end();
      },
      3,
      /could not be resumed/,
    ],
  ])(
    '[HOST-UPSTREAM-RESUME] if the upstream %s, the call gets an error after a bounded number of attempts',
    async (_, answer, attempts, text) => {
      const upstream = await scripted((request, response) => {
        if (request.method === 'POST') {
          sendSse(response, ['e1|']);
          response.end();
        } else if (request.headers['last-event-id'] === undefined) {
          response.writeHead(405).end();
        } else {
          answer(request, response);
        }
      });
      const driver = await openDriver(hostOf(upstream.url, { maxResumes: 3 }));
      await driver.initialize();
      expect(textOf(await driver.request('tools/call', { name: 'x' }))).toMatch(text);
      expect(upstream.requests.filter(({ headers }) => headers['last-event-id'] !== undefined)).toHaveLength(attempts);
    },
  );

  it('[HOST-UPSTREAM-RESUME] a call that is polled with the same id again and again goes on, up to a time', async () => {
    let polls = 0;
    const upstream = await scripted(({ method, headers }, response) => {
      if (method === 'POST') {
        sendSse(response, ['e1|']);
        response.write('retry: 10\n\n');
        response.end();
      } else if (headers['last-event-id'] === undefined) {
        response.writeHead(405).end();
      } else {
        polls += 1;
        sendSse(response, polls % 100 === 10 ? ['e1|', `e2|${result('c2')}`] : ['e1|']);
        response.end();
      }
    });
    const first = await openDriver(hostOf(upstream.url, { maxResumes: 3 }));
    await first.initialize();
    expect(await first.call('x')).toBe('ok');
    expect(polls).toBe(10);
    const second = await openDriver(hostOf(upstream.url, { maxResumes: 3, maxPollMs: 100 }));
    await second.initialize();
    expect(textOf(await second.request('tools/call', { name: 'x' }))).toMatch(/could not be resumed/);
  });

  it('[HOST-UPSTREAM-STANDALONE] a 405 to the GET is no fault, and the GET is not repeated', async () => {
    const { lines, logger } = createRecordingLogger();
    const upstream = await scripted(({ method, message }, response) => {
      if (method === 'POST') sendJson(response, JSON.parse(result(message['id'])));
      else response.writeHead(405).end();
    });
    const host = createUpstreamHost({ url: upstream.url }, { logger, clock: systemClock }, FAST);
    opened.push(host);
    const driver = await openDriver(host);
    await driver.initialize();
    await expect.poll(() => lines.some(({ event }) => event === 'host.upstream-no-standalone')).toBe(true);
    for (let n = 0; n < 5; n += 1) await driver.call('x');
    expect(upstream.requests.filter(({ method }) => method === 'GET')).toHaveLength(1);
    expect(lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  });

  it('[HOST-UPSTREAM-STANDALONE] what follows notifications/initialized is posted when the stream is open', async () => {
    const order: string[] = [];
    const upstream = await scripted(({ method, message }, response) => {
      order.push(method === 'GET' ? 'GET' : 'request');
      if (method === 'POST') {
        sendJson(response, JSON.parse(result(message['id'])));
        return;
      }
      setTimeout(() => {
        order.push('open');
        sendSse(response, []);
      }, 60);
    });
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    await driver.call('x');
    expect(order).toEqual(['GET', 'open', 'request']);
  });

  it('[HOST-UPSTREAM-STANDALONE] a stream that cannot be resumed is opened anew', async () => {
    let opens = 0;
    const upstream = await scripted(({ headers }, response) => {
      if (headers['last-event-id'] !== undefined) {
        response.writeHead(400).end();
        return;
      }
      opens += 1;
      sendSse(response, [`e${String(opens)}|${note(opens)}`]);
      if (opens === 1) response.end();
    });
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    await driver.waitFor(({ message }) => 'method' in message && message.params?.['n'] === 2);
    expect(upstream.requests.map(({ headers }) => headers['last-event-id']).filter(Boolean)).toEqual(['e1']);
  });

  it('[HOST-UPSTREAM-CANCEL] the connection of a cancelled call is freed although the upstream keeps it', async () => {
    let isOpen = false;
    const upstream = await scripted(({ method }, response) => {
      if (method !== 'POST') {
        response.writeHead(405).end();
        return;
      }
      isOpen = true;
      response.once('close', () => {
        isOpen = false;
      });
      sendSse(response, ['e1|']);
    });
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    await driver.session.deliver({ jsonrpc: '2.0', id: 'long', method: 'x' }, { canPoll: true });
    await expect.poll(() => isOpen).toBe(true);
    await driver.notify('notifications/cancelled', { requestId: 'long' });
    await expect.poll(() => isOpen).toBe(false);
    expect(driver.received).toHaveLength(1);
  });

  it('[HOST-ORDER] a later message is posted only when the notification before it was taken', async () => {
    const order: string[] = [];
    const server = await serveScripted((request, response) => {
      const { message } = request;
      if (message['method'] === 'slow') {
        setTimeout(() => {
          order.push('slow taken');
          response.writeHead(202).end();
        }, 80);
        return;
      }
      if (message['method'] === 'after') order.push('after seen');
      if (!answerHandshake(request, response)) sendJson(response, JSON.parse(result(message['id'])));
    });
    opened.push(server);
    const driver = await openDriver(hostOf(server.url));
    await driver.initialize();
    await Promise.all([driver.notify('slow'), driver.request('after')]);
    expect(order).toEqual(['slow taken', 'after seen']);
  });

  it('[HOST-ORDER] nothing is posted between initialize and its answer', async () => {
    const order: string[] = [];
    const server = await serveScripted((request, response) => {
      const { message } = request;
      order.push(String(message['method']));
      if (message['method'] !== 'initialize') {
        answerHandshake(request, response);
        return;
      }
      setTimeout(() => {
        order.push('answered');
        answerHandshake(request, response);
      }, 80);
    });
    opened.push(server);
    const driver = await openDriver(hostOf(server.url));
    await driver.session.deliver({ jsonrpc: '2.0', id: 0, method: 'initialize', params: {} }, { canPoll: false });
    await driver.notify('notifications/initialized');
    expect(order.slice(0, 3)).toEqual(['initialize', 'answered', 'notifications/initialized']);
    const posted = server.requests.find(({ message }) => message['method'] === 'notifications/initialized');
    expect(posted?.headers['mcp-session-id']).toBe('up-1');
  });

  it('[HOST-ORDER] a notification whose posting failed is posted again', async () => {
    let refusals = 2;
    const server = await serveScripted((request, response) => {
      if (request.message['method'] === 'retry-me' && refusals > 0) {
        refusals -= 1;
        if (refusals === 1) response.destroy();
        else response.writeHead(503).end();
        return;
      }
      if (!answerHandshake(request, response)) response.writeHead(405).end();
    });
    opened.push(server);
    const driver = await openDriver(hostOf(server.url));
    await driver.initialize();
    await driver.notify('retry-me');
    expect(server.requests.filter(({ message }) => message['method'] === 'retry-me')).toHaveLength(3);
  });

  it('[HOST-BACKPRESSURE] a slow consumer stops the reading of a stream', async () => {
    let written = 0;
    const upstream = await scripted(({ method, message }, response) => {
      if (method !== 'POST') {
        response.writeHead(405).end();
        return;
      }
      sendSse(response, []);
      const fill = 'z'.repeat(20_000);
      const more = (): void => {
        while (written < 3000) {
          written += 1;
          if (!response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'n', params: { fill } })}\n\n`)) {
            response.once('drain', more);
            return;
          }
        }
        response.end(`data: ${result(message['id'])}\n\n`);
      };
      more();
    });
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const driver = await openDriver(hostOf(upstream.url), {
      onMessage: (message) => ('method' in message ? held : Promise.resolve()),
    });
    await driver.initialize();
    const done = driver.call('x');
    let last = -1;
    await expect
      .poll(
        () => {
          const stands = written > 0 && written === last;
          last = written;
          return stands;
        },
        { interval: 150, timeout: 5000 },
      )
      .toBe(true);
    // 20 KB each: what socket buffers of a few MB hold, not the whole 60 MB.
    expect(last).toBeLessThan(1000);
    release();
    expect(await done).toBe('ok');
    expect(driver.received.filter(({ message }) => 'method' in message)).toHaveLength(3000);
  });

  it('[HOST-CLOSE] close aborts every connection, although the upstream never ends one', async () => {
    let open = 0;
    const upstream = await scripted((_, response) => {
      open += 1;
      response.once('close', () => {
        open -= 1;
      });
      sendSse(response, ['e1|']);
    });
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    for (const id of [1, 2, 3]) {
      await driver.session.deliver({ jsonrpc: '2.0', id, method: 'x' }, { canPoll: true });
    }
    await expect.poll(() => open).toBe(4);
    await driver.session.close();
    await expect.poll(() => open).toBe(0);
    expect(upstream.requests.at(-1)?.method).toBe('DELETE');
    expect(driver.received).toHaveLength(1);
  });

  it('[HOST-UPSTREAM-ANSWER] an answer that comes twice is passed on once', async () => {
    const upstream = await scripted(({ method, message }, response) => {
      if (method !== 'POST') {
        response.writeHead(405).end();
        return;
      }
      sendSse(response, [result(message['id'], 'first'), result(message['id'], 'second')]);
      response.end();
    });
    const driver = await openDriver(hostOf(upstream.url));
    await driver.initialize();
    expect(await driver.call('x')).toBe('first');
    await driver.call('y');
    expect(driver.received.filter(({ message }) => 'id' in message && message.id === 'c2')).toHaveLength(1);
  });
});
