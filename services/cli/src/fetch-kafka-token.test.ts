import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { fetchKafkaToken } from './fetch-kafka-token.ts';
import type { TokenSource } from './settings.ts';

interface Endpoint extends AsyncDisposable {
  readonly source: Extract<TokenSource, { readonly kind: 'client-credentials' }>;
  /** Authorization and body of each request. */
  readonly asked: string[];
}

async function serveTokens(status: number, answer: string): Promise<Endpoint> {
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
  return {
    source: { kind: 'client-credentials', url, clientId: 'a b', clientSecret: 'p:q', scope: 'kafka' },
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('fetchKafkaToken', () => {
  it('[CLI-KAFKA] asks the token endpoint by client credentials', async () => {
    await using endpoint = await serveTokens(200, '{"access_token":"T","token_type":"bearer"}');
    expect(await fetchKafkaToken(endpoint.source)).toBe('T');
    expect(endpoint.asked).toEqual([
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
      await using endpoint = await serveTokens(status, answer);
      const error: unknown = await fetchKafkaToken(endpoint.source).catch((reason: unknown) => reason);
      expect(String(error)).toMatch(new RegExp(`status ${status}.*--kafka-username`));
      expect(String(error)).not.toContain('p:q');
    }
  });

  it('[CLI-KAFKA-TOKEN] all connections of a process share a token for as long as `expires_in` lets them', async () => {
    for (const expires of ['3600', '"3600"']) {
      await using endpoint = await serveTokens(200, `{"access_token":"T","expires_in":${expires}}`);
      await Promise.all([fetchKafkaToken(endpoint.source), fetchKafkaToken(endpoint.source)]);
      expect(await fetchKafkaToken(endpoint.source)).toBe('T');
      expect(endpoint.asked).toHaveLength(2);
    }
    for (const expires of ['null', '"soon"', '-1']) {
      await using endpoint = await serveTokens(200, `{"access_token":"T","expires_in":${expires}}`);
      for (let time = 0; time < 2; time++) expect(await fetchKafkaToken(endpoint.source)).toBe('T');
      expect(endpoint.asked).toHaveLength(4);
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
