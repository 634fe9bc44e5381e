/** docs/guides/producer.md: a Python process with a stock Kafka client speaks to the client of a session. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openProducer } from '@throughline/producer';
import { makeKafkaPlace, makeScratchFolder, RawClient, startThroughline } from '@throughline/testkit/processes';
import { beforeAll, describe, expect, inject, it } from 'vitest';

const found = inject('kafka') as { readonly brokers: readonly string[] } | null | undefined;
const GUIDE = fileURLToPath(new URL('../../docs/guides/producer.md', import.meta.url));
/** Beside what npm keeps: made once. */
const VENV = fileURLToPath(new URL('../../node_modules/.cache/throughline-python', import.meta.url));
const PYTHON = path.join(VENV, 'bin', 'python');
const CLIENT = 'kafka-python==3.0.12';
const SETUP_MS = 120_000;
const run = promisify(execFile);

/** A Python with a Kafka client; `null`: there is none to be had here. */
async function findPython(): Promise<string | null> {
  try {
    if (!existsSync(PYTHON)) await run('python3', ['-m', 'venv', VENV], { timeout: SETUP_MS });
    await run(PYTHON, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', CLIENT], {
      timeout: SETUP_MS,
    });
    return PYTHON;
  } catch {
    return null;
  }
}

describe.skipIf(found == null)('docs/guides/producer.md', () => {
  let python: string | null = null;
  beforeAll(async () => {
    python = await findPython();
  }, SETUP_MS * 2);

  it(
    '[PRD-PYTHON] what its Python says comes to the client of the session once, though it is sent twice',
    { timeout: 120_000 },
    async ({ skip }) => {
      if (python === null) skip('no Python with a Kafka client can be had here');
      using folder = makeScratchFolder();
      const brokers = found?.brokers ?? [];
      const prefix = `producer-${process.pid}-${Date.now().toString(36)}`;
      const place = await makeKafkaPlace({ brokers, prefix })(folder.path, {});
      await using serve = await startThroughline('serve', { folder: folder.path, args: place.args('serve') });
      const client = await RawClient.connect(serve.url);
      const stream = await client.listen(serve.url);
      const [snippet = ''] = /(?<=```python\n)[^]*?(?=```)/u.exec(readFileSync(GUIDE, 'utf8')) ?? [];
      const end = `\ntell("done", {"method": "notifications/message", "params": {"level": "info", "data": "done"}}, now)\n`;
      const env = { ...process.env, SESSION_ID: client.sessionId, BROKERS: brokers.join(','), PREFIX: prefix };
      await run(python ?? '', ['-c', snippet + end], { env, timeout: 60_000 });
      await stream.until('the last message', ({ data }) => data.includes('"done"'));
      const said = stream.events().flatMap(({ data }) => (data === '' ? [] : [(JSON.parse(data) as Said).params.data]));
      expect(said).toEqual(['report 7 is ready', 'done']);
      stream.cut();
    },
  );
});

describe.skipIf(found == null)('@throughline/producer on Kafka', () => {
  it(
    '[PRD-ONCE] what is appended twice is heard once, in the order of the first ones',
    { timeout: 120_000 },
    async () => {
      using folder = makeScratchFolder();
      const place = await makeKafkaPlace({ brokers: found?.brokers ?? [] })(folder.path, {});
      await using serve = await startThroughline('serve', { folder: folder.path, args: place.args('serve') });
      const client = await RawClient.connect(serve.url);
      const stream = await client.listen(serve.url);
      await using resources = new AsyncDisposableStack();
      const log = resources.adopt(await place.open(), (each) => each.close());
      const producer = resources.adopt(await openProducer({ log }), (each) => each.close());
      for (let n = 1; n <= 20; n++) {
        const message = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: `n${n}` } };
        const copies = [1, 2].map(() => producer.append(client.sessionId, message, { idempotencyKey: `n-${n}` }));
        await Promise.all(copies);
      }
      await stream.until('the last message', ({ data }) => data.includes('"n20"'));
      const said = stream.events().flatMap(({ data }) => (data === '' ? [] : [(JSON.parse(data) as Said).params.data]));
      expect(said).toEqual(Array.from({ length: 20 }, (_, n) => `n${n + 1}`));
      stream.cut();
    },
  );
});

interface Said {
  readonly params: { readonly data: string };
}
