/**
 * docs/operations/kafka-tooling.md, block by block, on a broker: `throughline`, kcat and Kafka's scripts say the same.
 * A broker of its own, since one of the tools reads its disk.
 */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { startLocalKafka, writeKafkaScripts } from '@throughline/testkit/kafka';
import type { LocalKafka } from '@throughline/testkit/kafka';
import { makeScratchFolder, RawClient, startThroughline, waitUntil } from '@throughline/testkit/processes';
import type { ScratchFolder, ThroughlineProcess } from '@throughline/testkit/processes';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';

const PAGE = fileURLToPath(new URL('../../docs/operations/kafka-tooling.md', import.meta.url));
const MAIN = fileURLToPath(new URL('../../services/cli/src/main.ts', import.meta.url));
const STEP_MS = 90_000;

interface Block {
  readonly heading: string;
  readonly tool: 'throughline' | 'kcat' | 'kafka';
  readonly text: string;
}

/** Blocks with a tool behind `sh`; those without one are explanation. */
function readBlocks(): Block[] {
  const blocks: Block[] = [];
  let heading = '';
  const text = readFileSync(PAGE, 'utf8');
  for (const match of text.matchAll(
    /^## (?<heading>.+)$|^```sh (?<tool>throughline|kcat|kafka)[^\n]*\n(?<text>[^]*?)^```$/gm,
  )) {
    const { heading: found, tool, text: body } = match.groups ?? {};
    if (found !== undefined) heading = found;
    else if (tool !== undefined) blocks.push({ heading, tool: tool as Block['tool'], text: body ?? '' });
  }
  return blocks;
}

const BLOCKS = readBlocks();
const found = inject('kafka');
/** Kafka's scripts take seconds each: all of them run in the deep lane, the proofs always. */
const isDeep = process.env['DEEP'] === '1';

/** Outputs of a section, by tool; a tool that is not on the page, or not on this machine, is absent. */
type Outputs = Partial<Record<Block['tool'], string>>;

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(command, args, { env, cwd, timeout: STEP_MS, maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${args.join(' ')}\n${stdout}${stderr}`, { cause: error }));
    });
  });
}

describe.skipIf(found === null)('kafka-tooling.md', { timeout: 4 * STEP_MS }, () => {
  let folder: ScratchFolder;
  let kafka: LocalKafka;
  let serve: ThroughlineProcess;
  let client: RawClient;
  let hasKcat = false;
  let skipped = 0;
  const variables: Record<string, string> = {};
  const ran = new Set<string>();
  /** Of the event that `EVENT_ID` names, as the client received it. */
  let data = '';

  const environment = (): NodeJS.ProcessEnv => ({
    ...process.env,
    ...variables,
    PATH: `${path.join(folder.path, 'bin')}:${process.env['PATH'] ?? ''}`,
  });
  const bash = (text: string): Promise<string> =>
    run('bash', ['-euo', 'pipefail', '-c', text], environment(), folder.path);

  /** Runs every block of a section, in the order of the page. */
  async function section(heading: string, only?: Block['tool']): Promise<Outputs> {
    const outputs: Outputs = {};
    const blocks = BLOCKS.filter((block) => block.heading === heading && (only === undefined || block.tool === only));
    expect(blocks.length, heading).toBeGreaterThan(0);
    for (const { tool, text } of blocks) {
      ran.add(text);
      if (tool === 'kcat' && !hasKcat) skipped++;
      else outputs[tool] = await bash(text);
    }
    return outputs;
  }

  async function startOn(prefix: string, partitions: number): Promise<ThroughlineProcess> {
    const options = ['--log', `kafka://${kafka.brokers.join(',')}`, '--prefix', prefix];
    await bash(`throughline topics apply --replication 1 --partitions ${partitions} ${options.join(' ')}`);
    return await startThroughline('serve', { folder: folder.path, args: options });
  }

  beforeAll(async () => {
    folder = makeScratchFolder();
    const bin = path.join(folder.path, 'bin');
    mkdirSync(bin);
    variables['DATA'] = path.join(folder.path, 'kafka', 'data');
    kafka = await startLocalKafka({ dataDir: path.join(folder.path, 'kafka') });
    writeKafkaScripts(kafka.jars, bin);
    const shim = path.join(bin, 'throughline');
    writeFileSync(shim, `#!/bin/sh\nexec '${process.execPath}' --conditions=@throughline/source '${MAIN}' "$@"\n`);
    chmodSync(shim, 0o755);
    hasKcat = await run('kcat', ['-V'], process.env, folder.path).then(
      () => true,
      () => false,
    );
    variables['BROKERS'] = kafka.brokers.join(',');
    variables['PREFIX'] = 'tooling';
    variables['LOG'] = `--log kafka://${kafka.brokers.join(',')} --prefix tooling`;
    serve = await startOn('tooling', 3);
    client = await RawClient.connect(serve.url);
    const answer = await client.callTool(serve.url, 'test_simple_text');
    const { id = '', data: text } = await answer.until('the result', (item) => item.data.includes('"result"'));
    data = text;
    const [, partition = '', offset = ''] = id.split('.');
    const [, sessionPartition = '', , , key = ''] = client.sessionId.split('.');
    Object.assign(variables, { SESSION_ID: client.sessionId, EVENT_ID: id, PARTITION: partition, OFFSET: offset });
    Object.assign(variables, { KEY: key, SESSION_PARTITION: sessionPartition });
  }, 4 * STEP_MS);
  afterAll(async () => {
    await serve.stop();
    await kafka.stop();
    folder[Symbol.dispose]();
    if (skipped > 0)
      process.stderr.write(`\n${skipped} kcat blocks of kafka-tooling.md are SKIPPED: there is no kcat\n`);
  }, STEP_MS);

  it('[OPS-TOOLING] kcat is there where the run must not skip anything', () => {
    if (process.env['REQUIRE_KAFKA'] === '1') expect(hasKcat, 'apt-get install kcat').toBe(true);
  });

  it.runIf(isDeep)('[OPS-TOOLING] topics and settings are the same, whichever tool shows them', async () => {
    const topics = await section('Which topics there are');
    expect(topics.throughline).toMatch(/\ntooling\.events +3 +1 +1 /);
    expect(topics.kafka).toMatch(/PartitionCount: 3\s+ReplicationFactor: 1/);
    if (topics.kcat !== undefined) expect(topics.kcat).toContain('topic "tooling.events" with 3 partitions');
    const settings = await section('How a topic is set');
    const { topics: shown } = JSON.parse(settings.throughline ?? '') as {
      topics: { topic: string; settings: Record<string, string> }[];
    };
    const events = Object.entries(shown.find(({ topic }) => topic === 'events')?.settings ?? {});
    expect(events.length).toBeGreaterThan(8);
    for (const [name, value] of events) expect(settings.kafka, name).toContain(` ${name}=${value} `);
  });

  it('[OPS-EVENT] the partition and offset in an event id that a client received name that very event, byte for byte', async () => {
    const event = await section('The event that a client complains about');
    expect(event.throughline).toContain(`value      ${data}\n`);
    expect(event.throughline).toContain('resume     nothing is left on this stream: 204');
    expect(event.kafka).toBe(`${data}\n`);
    if (event.kcat !== undefined) expect(event.kcat).toBe(`${data}\n`);
  });

  it.runIf(isDeep)('[OPS-TOOLING] headers, key and time of an event are the same', async () => {
    const { throughline = '', kafka: script = '', kcat } = await section('The headers, key and time of an event');
    const [time = '', , key = '', ...rest] = throughline.trim().split(' ');
    const headers = ['v=1', `type=${rest[0] ?? ''}`, ...rest.slice(1, -1)];
    expect(key).toBe(variables['KEY']);
    expect(headers).toEqual([
      'v=1',
      'type=message',
      expect.stringMatching(/^stream=r\d+$/),
      expect.stringMatching(/^owner=\d+$/),
      'end=1',
    ]);
    expect(script).toContain(`LogAppendTime:${Date.parse(time)}\t${headers.join(',').replaceAll('=', ':')}\t${key}\t`);
    if (kcat !== undefined) expect(kcat).toBe(`${Date.parse(time)} ${key} ${headers.join(',')}\n`);
  });

  it.runIf(isDeep)('[OPS-TOOLING] the records of a session, and what is known of it, are the same', async () => {
    const all = await section('Everything of one session');
    const lines = (text = ''): string[] => text.trimEnd().split('\n');
    const values = lines(all.throughline).map((line) => line.slice(line.search(/\d+B /)).replace(/^\d+B /, ''));
    expect(values).toContain(data);
    expect(lines(all.kafka).map((line) => line.slice(line.indexOf(' ') + 1).replace(/^null$/, '(none)'))).toEqual(
      values,
    );
    if (all.kcat !== undefined) {
      const offsets = lines(all.throughline).map((line) => /@(\d+) /.exec(line)?.[1]);
      expect(lines(all.kcat).map((line) => line.split(' ')[1])).toEqual(offsets);
    }
    const known = await section('What is known of a session, and whether it has ended');
    expect(known.throughline).toMatch(/^session +lives: [^]*\nclient +\{"name":"raw","version":"1.0.0"\}/);
    expect(known.kafka).toMatch(new RegExp(`^${variables['KEY'] ?? ''} \\{.*"name":"raw"`));
    if (known.kcat !== undefined) expect(known.kcat).toBe(known.kafka);
  });

  it.runIf(isDeep)('[OPS-TOOLING] ends, owners, lag and epoch are the same', async () => {
    const ends = await section('How far a partition goes');
    const { held } = JSON.parse(ends.throughline ?? '') as { held: { end: number } };
    expect(ends.kafka).toBe(`tooling.events:${variables['PARTITION'] ?? ''}:${held.end}\n`);
    if (ends.kcat !== undefined) expect(ends.kcat).toContain(`offset ${held.end}\n`);
    // Commits come a moment after the work.
    await waitUntil(
      'the same lag in both',
      async () => {
        const { throughline = '', kafka: script = '' } = await section('Whose a partition is, and what waits in it');
        const rows = throughline
          .split('\n')
          .filter((line) => /^\d/.test(line))
          .map((line) => line.split(/ {2,}/));
        expect(rows.map(([partition, state]) => [partition, state])).toEqual([
          ['0', 'owned'],
          ['1', 'owned'],
          ['2', 'owned'],
        ]);
        return rows.every(([partition = '', , , , , lag = '']) =>
          new RegExp(`tooling\\.workers +tooling\\.inbound +${partition} +\\d+ +\\d+ +${lag} `).test(script),
        );
      },
      STEP_MS,
    );
    const epoch = await section('The epoch in force');
    const token = /In force: (\w+),/.exec(epoch.throughline ?? '')?.[1] ?? '';
    expect(client.sessionId.startsWith(`${token}.`)).toBe(true);
    expect(epoch.kafka).toMatch(new RegExp(`^epoch/${token} \\{"token":"${token}"`));
    if (epoch.kcat !== undefined) expect(epoch.kcat).toBe(epoch.kafka);
  });

  it('[OPS-FOREIGN] a notification that kcat appends reaches the client of a living session with an event id, which resumes', async ({
    skip,
  }) => {
    if (!hasKcat) skip();
    const stream = await client.listen(serve.url);
    await section('Say something to a living session', 'kcat');
    const { id = '' } = await stream.until('the notification', ({ data: text }) =>
      text.includes('maintenance at noon'),
    );
    stream.cut();
    const shown = await bash(`throughline inspect ${id} --payload --session $SESSION_ID $LOG`);
    expect(shown).toMatch(
      /\nheaders +type=message,stream=s\nvalue +\{"jsonrpc"[^]*\ncounts +accepted\nresume +yes: 200, 0 messages, then live\n/,
    );
    // What is appended while the client is away waits for it.
    await section('Say something to a living session', 'kcat');
    const resumed = await client.resume(serve.url, id);
    const again = await resumed.until('the second one', ({ data: text }) => text.includes('maintenance at noon'));
    expect(Number(again.id?.split('.')[4])).toBe(Number(id.split('.')[4]) + 1);
    resumed.cut();
  });

  it.runIf(isDeep)(
    "[OPS-FOREIGN] so does one of Kafka's console producer, where the log has one partition",
    async () => {
      await using single = await startOn('single', 1);
      const other = await RawClient.connect(single.url);
      const stream = await other.listen(single.url);
      const before = { ...variables };
      Object.assign(variables, { PREFIX: 'single', KEY: other.sessionId.split('.')[4] ?? '' });
      await section('Say something to a living session', 'kafka');
      Object.assign(variables, before);
      const { id = '' } = await stream.until('the notification', ({ data: text }) => text.includes('from the console'));
      expect(id.split('.')[1]).toBe('0');
      stream.cut();
    },
  );

  it.runIf(isDeep)(
    '[OPS-TOOLING] retention is raised alike, records on disk are the records, and what is given up is a gap',
    async () => {
      const raised = await section('Hold events longer');
      expect(raised.throughline).toMatch(/~ tooling\.events: retention\.ms 86400000 -> 172800000\n[^]*0 refused/);
      expect(await bash('throughline topics diff --retention 48h $LOG')).toBe('The topics are as they should be.\n');
      const disk = await section("Read a segment as it lies on a broker's disk");
      expect(disk.kafka).toContain(`payload: ${data}`);
      const gone = await section('Give up old events');
      expect(gone.throughline).toMatch(/\nrecord +none at partition[^]*\nresume +no: gap \(200 with a JSON-RPC error/);
    },
  );

  it.runIf(isDeep)('[OPS-TOOLING] every block of the page was run', () => {
    expect(BLOCKS.filter(({ text }) => !ran.has(text)).map(({ heading, tool }) => `${heading}: ${tool}`)).toEqual([]);
    expect(BLOCKS.length).toBeGreaterThan(25);
  });
});
