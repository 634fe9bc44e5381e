import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeScratchFolder, startCluster, startThroughline, waitUntil } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { SERVER_V1, SERVER_V2 } from './fixtures/paths.ts';
import { isKafka, it, makeLog } from './log-under-test.ts';
import { CLIENT_LINES, connectOfficial } from './official-client.ts';
import type { OfficialClient } from './official-client.ts';
import { createRecordingFetch, inTurn } from './recording-fetch.ts';
import type { RecordingFetch } from './recording-fetch.ts';

/** Each line of clients speaks to a server of its own line. */
const CONFIG = `servers:
  v1: { module: ${JSON.stringify(SERVER_V1)} }
  v2: { module: ${JSON.stringify(SERVER_V2)} }
`;

const resources = new AsyncDisposableStack();
const endpoints = new Map<string, readonly string[]>();

beforeAll(async () => {
  const folder = resources.use(makeScratchFolder());
  const config = path.join(folder.path, 'throughline.yaml');
  writeFileSync(config, CONFIG);
  const args = ['--config', config];
  const log = isKafka ? await makeLog(folder.path, {}) : { args: () => ['--log', 'memory:'] };
  const one = resources.use(
    await startThroughline('serve', { folder: folder.path, args: [...args, ...log.args('serve')] }),
  );
  const cluster = resources.use(await startCluster({ log: makeLog, args }));
  endpoints.set('one process', [one.url]);
  endpoints.set('two gateways and two workers', cluster.urls());
}, 90_000);

afterAll(() => resources.disposeAsync(), 60_000);

const CASES = ['one process', 'two gateways and two workers'].flatMap((where) =>
  CLIENT_LINES.map((line) => ({ line, where })),
);

describe.each(CASES)('the official client $line over $where', ({ line, where }) => {
  let client: OfficialClient;
  let recording: RecordingFetch;

  beforeAll(async () => {
    const urls = (endpoints.get(where) ?? []).map((url) => `${url}/${line}`);
    recording = createRecordingFetch({ pick: inTurn(() => urls) });
    client = await connectOfficial(line, { fetch: recording.fetch });
  });
  afterAll(() => client[Symbol.asyncDispose]());

  it('[E2E-CLIENTS] initializes, lists tools and calls one', async () => {
    expect(client.serverName()).toBe(`fixture-${line}`);
    expect(await client.toolNames()).toEqual(expect.arrayContaining(['echo', 'countdown', 'ask', 'sample', 'notify']));
    expect(await client.callTool('echo', { text: 'grüße 🚀' })).toBe('grüße 🚀');
    await client.ping();
  });

  it('[E2E-CLIENTS] a call reports each step of its progress once and in order', async () => {
    const seen: number[] = [];
    const text = await client.callTool(
      'countdown',
      { from: 8, intervalMs: 2 },
      { onProgress: (step) => seen.push(step) },
    );
    expect(text).toBe('done 8');
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('[E2E-CLIENTS] a server asks the model and the user through the client while its call waits', async () => {
    expect(await client.callTool('sample', { prompt: 'say it' })).toContain('sampled');
    expect(await client.callTool('ask', { question: 'what?' })).toBe('accept {"answer":"forty-two"}');
  });

  it('[E2E-CLIENTS] log messages arrive, those of a call with it and those of no call on the standalone stream', async () => {
    await client.setLogLevel('debug');
    await client.callTool('notify', { text: `at once ${line}` });
    await client.callTool('notify_later', { text: `later ${line}`, ms: 20 });
    await waitUntil('the log messages', () => client.logged.length >= 2);
    expect(client.logged).toEqual([`at once ${line}`, `later ${line}`]);
    const carriers = recording.answers.filter(({ items }) => items.some(({ data }) => data.includes(`later ${line}`)));
    expect(carriers.map(({ method }) => method)).toEqual(['GET']);
  });

  it('[E2E-ALTERNATE] each request went to the other gateway than the one before', () => {
    const asked = recording.answers.map(({ url }) => url);
    expect(asked.length).toBeGreaterThan(8);
    if (where === 'one process') expect(new Set(asked).size).toBe(1);
    else for (const [index, url] of asked.slice(1).entries()) expect(url).not.toBe(asked[index]);
    expect(client.errors).toEqual([]);
  });
});
