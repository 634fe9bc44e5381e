import { startFaultyServer } from '@throughline/client/testing';
import { waitUntil } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { CLIENT_LINES, connectOfficial } from '../e2e/official-client.ts';

const EVENTS = [1, 2, 3].map((n) => `event ${n}: naïve 漢字 ✓`);
const SERVERS = (['throughline', 'numbered', 'opaque'] as const).flatMap((dialect) =>
  CLIENT_LINES.map((line) => ({ dialect, line })),
);

describe.each(SERVERS)('the official client $line before an honest server, dialect $dialect', ({ dialect, line }) => {
  it('[LIAR-HONEST] initializes, lists, calls, reports progress, answers what it is asked, listens and ends', async () => {
    await using server = await startFaultyServer({ dialect });
    await using client = await connectOfficial(line, { url: server.url });
    expect(client.serverName()).toBe(`faulty-server-${dialect}`);
    expect(await client.toolNames()).toEqual(['echo', 'count', 'announce', 'progress', 'ask', 'sample']);
    expect(await client.callTool('echo', { text: 'naïve 漢字' })).toBe('naïve 漢字');
    await client.ping();
    await client.setLogLevel('info');

    const steps: number[] = [];
    expect(await client.callTool('progress', { to: 3 }, { onProgress: (step) => steps.push(step) })).toBe(
      'made 3 steps',
    );
    await waitUntil('three steps', () => steps.length === 3);
    expect(steps).toEqual([1, 2, 3]);

    expect(await client.callTool('count', { to: 3 })).toBe('counted to 3');
    await waitUntil('three events of the call', () => client.logged.length === 3);
    expect(JSON.parse(await client.callTool('ask', { question: 'what?' }))).toMatchObject({
      action: 'accept',
      content: { answer: 'forty-two' },
    });
    expect(JSON.parse(await client.callTool('sample', { prompt: 'say' }))).toMatchObject({
      model: 'test-model',
      content: { type: 'text', text: 'sampled' },
    });

    expect(await client.callTool('announce', { to: 3 })).toBe('announcing 3');
    await waitUntil('three events of no call', () => client.logged.length === 6);
    expect(client.logged).toEqual([...EVENTS, ...EVENTS]);
    expect(client.errors).toEqual([]);

    await client.terminate();
    expect(server.requests.at(-1)).toMatchObject({ method: 'DELETE', status: dialect === 'throughline' ? 204 : 200 });
    await expect(client.callTool('echo')).rejects.toThrow();
    expect(server.runs).toEqual(['echo', 'progress', 'count', 'ask', 'sample', 'announce']);
  });
});
