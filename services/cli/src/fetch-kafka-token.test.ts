import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { fetchKafkaToken } from './fetch-kafka-token.ts';

async function ask(status: number, answer: string): Promise<{ result: Promise<string>; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      asked.push(request.headers.authorization ?? '', body);
      response.writeHead(status).end(answer);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/token`;
  const source = { kind: 'client-credentials', url, clientId: 'a b', clientSecret: 'p:q', scope: 'kafka' } as const;
  const result = fetchKafkaToken(source).finally(() => server.close());
  result.catch(() => undefined);
  return { result, asked };
}

describe('fetchKafkaToken', () => {
  it('[CLI-KAFKA] asks the token endpoint by client credentials', async () => {
    const { result, asked } = await ask(200, '{"access_token":"T","token_type":"bearer"}');
    expect(await result).toBe('T');
    expect(asked).toEqual([
      `Basic ${Buffer.from('a+b:p%3Aq').toString('base64')}`,
      'grant_type=client_credentials&scope=kafka',
    ]);
  });

  it('[CLI-KAFKA] [CLI-REDACT] without a token it names what to check, and never the secret', async () => {
    for (const [status, answer] of [
      [401, '{"error":"invalid_client"}'],
      [200, '<html>'],
      [200, '{}'],
    ] as const) {
      const { result } = await ask(status, answer);
      const error: unknown = await result.catch((reason: unknown) => reason);
      expect(String(error)).toMatch(new RegExp(`status ${status}.*--kafka-username`));
      expect(String(error)).not.toContain('p:q');
    }
  });

  it('[CLI-KAFKA] reads the token file anew for each login', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'kafka-token-'));
    const file = path.join(folder, 'token');
    writeFileSync(file, 'one\n');
    expect(await fetchKafkaToken({ kind: 'file', file })).toBe('one');
    writeFileSync(file, 'two');
    expect(await fetchKafkaToken({ kind: 'file', file })).toBe('two');
    writeFileSync(file, ' \n');
    await expect(fetchKafkaToken({ kind: 'file', file })).rejects.toThrow(/--kafka-token-file is empty/);
    rmSync(folder, { recursive: true });
    await expect(fetchKafkaToken({ kind: 'file', file })).rejects.toThrow(/there is no such file/);
  });
});
