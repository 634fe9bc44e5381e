import { decodeText } from '@throughline/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHash } from 'node:crypto';
import { call, createRig, initialize } from './testing/core-rig.ts';
import type { Rig } from './testing/core-rig.ts';
import { result } from './testing/backend.ts';

let rig: Rig;
beforeEach(async () => {
  rig = await createRig();
  await rig.backend.startWorker();
});
afterEach(() => rig.stop());

describe('what a gateway stores of a request', () => {
  const TOKEN = 'token-of-a-person';
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    cookie: 'sid=cookie-of-a-person',
    'x-forwarded-for': '203.0.113.77',
    'user-agent': 'browser-of-a-person/1.0',
    referer: 'http://localhost/page-of-a-person',
    'mcp-name': 'name-of-a-person',
  };
  const SECRETS = [...Object.values(headers), TOKEN, 'person@example.com'];

  it('[GW-STORED] is its message and the tag of its principal: no token, cookie, address, other header, or name of the principal', async () => {
    const principal = 'person@example.com';
    const tokens = [{ principal, sha256: createHash('sha256').update(TOKEN).digest('hex') }];
    const peer = await rig.gateway({ tokens });
    const opened = await peer.send('POST', initialize('2025-11-25'), { headers });
    const session = opened.sink.headers['Mcp-Session-Id'] ?? '';
    await rig.backend.say(session, { kind: 'request', at: 0 }, result(0), { end: true });
    await peer.post(session, call(1, 'tools/call', { text: 'what the tool is asked' }), { headers });
    await peer.get(session, undefined, { headers: { ...headers, accept: 'text/event-stream' } });
    await peer.get(session, 'cursor.made.up', { headers: { ...headers, accept: 'text/event-stream' } });
    await peer.send('DELETE', null, { session, headers });

    const topics = await Promise.all(
      (['inbound', 'events', 'meta', 'sessions'] as const).map((topic) => rig.backend.read(topic)),
    );
    const records = topics
      .flat()
      .map(({ key, value, headers: own }) =>
        [key, value, ...own.map(([, bytes]) => bytes)]
          .map((bytes) => (bytes === null ? '' : decodeText(bytes)))
          .join('\n'),
      );
    expect(records.some((text) => text.includes('what the tool is asked'))).toBe(true);
    expect(records.length).toBeGreaterThan(4);
    for (const secret of [...SECRETS, session]) for (const text of records) expect(text).not.toContain(secret);
    const logs = rig.logs.map((line) => JSON.stringify(line));
    for (const secret of [...SECRETS, session, 'what the tool is asked'])
      for (const text of logs) expect(text).not.toContain(secret);
  });
});
