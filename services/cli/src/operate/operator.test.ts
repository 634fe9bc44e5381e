/** The operator's commands beside a running `serve`, on a log file. */
import { makeScratchFolder, RawClient, startThroughline, waitUntil } from '@throughline/testkit/processes';
import type { ScratchFolder, ThroughlineProcess } from '@throughline/testkit/processes';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatEventId, parseEventId } from '@throughline/protocol';
import type { DescribedSession } from './inspect-session.ts';
import type { OwnerRow } from './owners.ts';
import { runCli } from './testing/run-cli.ts';

let folder: ScratchFolder;
let serve: ThroughlineProcess;
let log: string;
beforeAll(async () => {
  folder = makeScratchFolder();
  serve = await startThroughline('serve', {
    folder: folder.path,
    args: ['--log', 'sqlite:log.db', '--partitions', '2'],
  });
  log = `--log sqlite:${path.join(folder.path, 'log.db')}`;
}, 90_000);
afterAll(async () => {
  await serve.stop();
  folder[Symbol.dispose]();
}, 60_000);

describe("the operator's commands on a log file", { timeout: 60_000 }, () => {
  it('[CLI-OWNERS] owners names the living worker of each partition and what is open in it', async () => {
    const client = await RawClient.connect(serve.url);
    const { code, stdout } = await runCli(`owners --json ${log}`);
    expect(code).toBe(0);
    const { epoch, owners } = JSON.parse(stdout) as { epoch: string; owners: OwnerRow[] };
    expect(client.sessionId.split('.')[0]).toBe(epoch);
    expect(owners.map(({ partition, state, open, error }) => [partition, state, open, error])).toEqual([
      [0, 'owned', 0, null],
      [1, 'owned', 0, null],
    ]);
    expect(new Set(owners.map(({ worker }) => worker)).size).toBe(1);
    expect((await runCli(`owners ${log}`)).stdout).toMatch(/^PARTITION +STATE +WORKER[^]*\n0 +owned +w-/);
  });

  it('[CLI-INSPECT] what inspect says of a cursor is what the gateway then answers, each reason told apart', async () => {
    const client = await RawClient.connect(serve.url);
    const answer = await client.callTool(serve.url, 'countdown', { from: 3, intervalMs: 20 });
    await answer.until('the result', ({ data }) => data.includes('"result"'));
    const ids = answer.items.flatMap(({ id, data }) => (id !== undefined && data !== '' ? [id] : []));
    const [first = '', second = ''] = ids;
    const last = ids.at(-1) ?? '';
    const cursor = parseEventId(first);
    if (cursor === null) throw new Error(`no event id: ${first}`);
    const other = await RawClient.connect(serve.url);
    const inspect = async (id: string, session: string | null = client.sessionId): Promise<unknown> => {
      const { stdout } = await runCli(`inspect ${id} --json ${log}${session === null ? '' : ` --session ${session}`}`);
      return (JSON.parse(stdout) as { resume: unknown }).resume;
    };
    // Told before it is tried: a refusal ends the session.
    expect(await inspect(second)).toEqual({ outcome: 'resumes', replays: ids.length - 2, then: 'end of stream' });
    expect(await inspect(second, null)).toEqual(await inspect(second));
    const resumed = await client.resume(serve.url, second);
    await resumed.until('the result', ({ data }) => data.includes('"result"'));
    expect(resumed.items.filter(({ data, kind }) => kind === 'event' && data !== '')).toHaveLength(ids.length - 2);

    expect(await inspect(last)).toEqual({ outcome: 'finished' });
    expect((await client.resume(serve.url, last)).status).toBe(204);

    expect(await inspect(first, other.sessionId)).toMatchObject({
      outcome: 'refused',
      reason: 'cursor-foreign',
      answer: 400,
    });
    expect((await other.resume(serve.url, first)).status).toBe(400);

    const refusals = [
      ['diverged', { ...cursor, crc: cursor.crc ^ 1 }],
      ['beyond-end', { ...cursor, offset: cursor.offset + 1_000_000 }],
      ['epoch-mismatch', { ...cursor, epoch: 'zzzzzzzzzz' }],
    ] as const;
    for (const [reason, altered] of refusals)
      expect(await inspect(formatEventId(altered))).toEqual({
        outcome: 'refused',
        reason,
        answer: 'in-band',
        endsSession: true,
      });
    const refused = await client.resume(serve.url, formatEventId(refusals[0][1]));
    await refused.until('the refusal', ({ data }) => data.includes('"diverged"'));
    // The refusal has ended it.
    expect(await inspect(second)).toMatchObject({ outcome: 'refused', reason: 'session-ended' });
    const described = await runCli(`inspect ${client.sessionId} --json ${log}`);
    expect(JSON.parse(described.stdout)).toMatchObject({ state: 'ended', end: { reason: 'resumption-rejected' } });
  });

  it('[CLI-INSPECT] of an event id the record is shown as it lies in the log, with its value only when asked', async () => {
    const client = await RawClient.connect(serve.url);
    const answer = await client.callTool(serve.url, 'test_simple_text');
    const { id = '', data } = await answer.until('the result', (item) => item.data.includes('"result"'));
    const { partition, offset } = parseEventId(id) ?? {};
    const { record, acceptance } = JSON.parse((await runCli(`inspect ${id} --json --payload ${log}`)).stdout) as {
      record: { headers: Record<string, string> };
      acceptance: string;
    };
    expect(record).toMatchObject({
      topic: 'events',
      partition,
      offset,
      key: client.sessionId.split('.')[4],
      value: data,
    });
    expect(record.headers).toMatchObject({ v: '1', type: 'message', end: '1' });
    expect(acceptance).toBe('accepted');
    const { stdout } = await runCli(`inspect ${id} --payload ${log}`);
    expect(stdout).toContain(`value      ${data}\n`);
    expect(stdout).toContain(`topic      events, partition ${partition}, offset ${offset}\n`);
    const plain = await runCli(`inspect ${id} ${log}`);
    expect(plain.stdout).toMatch(
      new RegExp(
        `\nsize       ${Buffer.byteLength(data)} bytes\nheaders    v=1,type=message,[^\n]*\ncounts     accepted\n`,
      ),
    );
    const programs = await runCli(`inspect ${id} --json ${log}`);
    expect(JSON.parse(programs.stdout)).toMatchObject({ record: { valueBytes: Buffer.byteLength(data) } });
    for (const text of [plain.stdout, programs.stdout]) expect(text).not.toContain('jsonrpc');
  });

  it('[CLI-INSPECT] a record that the id was not made for is never shown as the event, and never with its value', async () => {
    const client = await RawClient.connect(serve.url);
    const answer = await client.callTool(serve.url, 'test_simple_text');
    const { id = '' } = await answer.until('the result', (item) => item.data.includes('"result"'));
    const cursor = parseEventId(id);
    if (cursor === null) throw new Error(`no event id: ${id}`);
    const foreign = await RawClient.connect(serve.url);
    for (const altered of [
      { ...cursor, crc: cursor.crc ^ 1 },
      { ...cursor, offset: cursor.offset - 1 },
    ]) {
      const text = await runCli(`inspect ${formatEventId(altered)} --payload ${log}`);
      expect(text.stdout).toContain('\nrecord     not this event: another record lies at its place');
      expect(text.stdout).not.toMatch(/^(value|counts) /m);
      const { stdout } = await runCli(`inspect ${formatEventId(altered)} --payload --json ${log}`);
      expect(JSON.parse(stdout)).toMatchObject({
        record: null,
        otherRecord: { topic: 'events', offset: altered.offset, valueBytes: expect.any(Number) as number },
        acceptance: null,
      });
      expect(stdout).not.toContain('jsonrpc');
    }
    const { stdout } = await runCli(`inspect ${id} --session ${foreign.sessionId} ${log}`);
    expect(stdout).toContain('\nrecord     of another session or stream than that of --session:\ntopic ');
    const past = await runCli(`inspect ${formatEventId({ ...cursor, epoch: 'zzzzzzzzzz' })} ${log}`);
    expect(past.stdout).toContain('\nepoch      zzzzzzzzzz, which this log does not know; in force is ');
    expect(past.stdout).toContain(
      '\ncounts     no: it belongs to the epoch zzzzzzzzzz, which this log does not know\n',
    );
  });

  it('[CLI-INSPECT] of a session id the state, signature, client, open requests and owner are told', async () => {
    const client = await RawClient.connect(serve.url);
    const slow = await client.callTool(serve.url, 'countdown', { from: 40, intervalMs: 250 });
    await slow.until('progress', ({ data }) => data.includes('notifications/progress'));
    const described = JSON.parse(
      (await runCli(`inspect ${client.sessionId} --json ${log}`)).stdout,
    ) as DescribedSession;
    expect(described).toMatchObject({
      state: 'lives',
      mac: 'right',
      principal: 'anonymous',
      end: null,
      record: { server: 'default', version: '2025-11-25', client: { name: 'raw', version: '1.0.0' } },
      owner: { state: 'owned' },
    });
    expect(described.open).toHaveLength(1);
    const forged = client.sessionId.slice(0, -22) + 'A'.repeat(22);
    expect((await runCli(`inspect ${forged} ${log}`)).stdout).toContain('signature  no secret, principal and server');
    expect((await client.end(serve.url)).status).toBe(204);
    expect((await runCli(`inspect ${client.sessionId} ${log}`)).stdout).toMatch(
      /^session +has ended[^]*because: deleted/,
    );
  });

  it('[CLI-INSPECT] what is no id ends with exit code 2 and names the field', async () => {
    expect(await runCli(`inspect nonsense ${log}`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('it has 1 fields between dots') as string,
    });
    // Nothing was to be started, and no configuration of a gateway is looked at.
    expect((await runCli('inspect nonsense --log kafka://kafka.example:9092')).stderr).toMatch(
      /^throughline: 1 fault in `inspect`; nothing was done\.\n {2}- "nonsense": [^\n]*\nIts options: throughline help inspect\n$/,
    );
  });

  it('[CLI-EPOCH] rotate says what it would do, does it with --yes, and show tells both epochs and the reason', async () => {
    const client = await RawClient.connect(serve.url);
    const before = client.sessionId.split('.')[0] ?? '';
    const answer = await client.callTool(serve.url, 'test_simple_text');
    const { id: eventId = '' } = await answer.until('the result', (item) => item.data.includes('"result"'));
    const asked = await runCli(['epoch', 'rotate', '--reason', 'a drill', ...log.split(' ')]);
    expect(asked).toMatchObject({ code: 1, stdout: '' });
    expect(asked.stderr).toMatch(/every session .* add --yes/);
    expect((await runCli(`epoch show --json ${log}`)).stdout).toContain(`"token": "${before}"`);
    const done = await runCli(['epoch', 'rotate', '--yes', '--json', '--reason', 'a drill', ...log.split(' ')]);
    expect(done.code).toBe(0);
    const { epoch, previous } = JSON.parse(done.stdout) as { epoch: string; previous: string };
    expect(previous).toBe(before);
    const { stdout } = await runCli(`epoch show ${log}`);
    expect(stdout).toMatch(new RegExp(`In force: ${epoch}, for .*, because: a drill\n`));
    expect(stdout).toMatch(new RegExp(`\n${before} +former .*\n${epoch} +in-force .* a drill\n`));
    const next = await RawClient.connect(serve.url);
    expect(next.sessionId.split('.')[0]).toBe(epoch);
    // Not fenced: it counted while its epoch lasted.
    const inspected = await runCli(`inspect ${eventId} ${log}`);
    expect(inspected.stdout).toContain(`\nepoch      ${before}, a former epoch of this log; in force is ${epoch}\n`);
    expect(inspected.stdout).toContain(
      `\ncounts     no more: it belongs to the former epoch ${before}, which has ended\n`,
    );
  });

  it('[CLI-DOCTOR] doctor finds nothing wrong on a healthy log file, and fails where there is none', async () => {
    const { code, stdout } = await runCli(`doctor --json ${log}`);
    const { findings } = JSON.parse(stdout) as { findings: { code: string; level: string; why: string }[] };
    // Other tests here may have rotated the epoch a moment ago.
    expect(findings.filter(({ level, code: each }) => level !== 'ok' && each !== 'epoch')).toEqual([]);
    expect(code).toBe(0);
    expect(findings.map(({ code: each }) => each)).toContain('owners');
    expect(findings.every(({ why }) => why.length > 20)).toBe(true);
    const none = await runCli(`doctor --log sqlite:${path.join(folder.path, 'none.db')}`);
    expect(none).toMatchObject({ code: 1, stdout: expect.stringContaining('there is no log at') as string });
  });

  it('[CLI-TAIL] prints the records of a session in order, with values only when asked', async () => {
    const client = await RawClient.connect(serve.url);
    const answer = await client.callTool(serve.url, 'test_simple_text');
    const { data } = await answer.until('the result', (item) => item.data.includes('"result"'));
    const ask = `tail --from start --once --session ${client.sessionId} ${log}`;
    const plain = await runCli(ask);
    expect(plain.code).toBe(0);
    const lines = plain.stdout.trimEnd().split('\n');
    expect(lines.map((line) => line.split(' ')[2])).toEqual(lines.map(() => client.sessionId.split('.')[4]));
    expect(lines.at(-1)).toMatch(/^2\S+Z events\/\d@\d+ \S+ message stream=r\d+ owner=\d+ end=1 \d+B$/);
    expect(plain.stdout).not.toContain('"jsonrpc"');
    const full = await runCli(`${ask} --payload --json`);
    const records = full.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { offset: number; value: string | null });
    expect(records.at(-1)?.value).toBe(data);
    expect(records.map(({ offset }) => offset)).toEqual(records.map(({ offset }) => offset).toSorted((a, b) => a - b));
    const onceMs = performance.now();
    await runCli(`${ask} --topic inbound --once`);
    const countMs = performance.now();
    const inbound = await runCli(`${ask.replace(' --once', '')} --topic inbound --payload --count 1`);
    // More records follow: it does not wait for others (5 s) when it has enough.
    expect(performance.now() - countMs).toBeLessThan(countMs - onceMs + 3000);
    expect(inbound.stdout).toMatch(/^\S+ inbound\/\d@\d+ [^\n]*"method":"initialize"[^\n]*\n$/);
  });

  it('[CLI-TAIL] never prints the secret of a log file', async () => {
    const { stdout } = await runCli(`tail --topic meta --from start --once --payload ${log}`);
    const lines = stdout.split('\n').filter((line) => line.includes(' secret/'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/ \d+B <redacted>$/);
  });

  it('[CLI-TAIL] follows what comes until Ctrl-C, and ends with exit code 0', async () => {
    const stop = new AbortController();
    let printed = '';
    const onOut = (text: string): void => {
      printed += text;
    };
    const running = runCli(`tail --topic inbound --json ${log}`, { signal: stop.signal, onOut });
    const client = await RawClient.connect(serve.url);
    // When it has begun to follow nobody can tell: what comes after that is printed.
    await waitUntil('a record', async () => {
      await client.notify(serve.url, 'notifications/roots/list_changed');
      return printed.includes('\n');
    });
    expect(JSON.parse(printed.split('\n')[0] ?? '')).toMatchObject({
      topic: 'inbound',
      valueBytes: expect.any(Number) as number,
    });
    stop.abort();
    expect((await running).code).toBe(0);
  });

  it('[CLI-TAIL] what cannot be is refused before the log is opened', async () => {
    for (const [line, problem] of [
      ['tail --from 7', '--from: an offset is one of a partition'],
      ['tail --topic event', 'must be one of inbound, events, sessions, meta, dead-letter'],
      ['tail --count 0', 'must be a whole number from 1 on'],
      ['tail --session abc', 'is no session id'],
    ] as const)
      expect(await runCli(`${line} ${log}`), line).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(problem) as string,
      });
    expect(await runCli(`tail --partition 9 ${log}`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('events has 2 partitions, from 0 on') as string,
    });
  });

  it('[CLI-OPERATE] a command that looks makes no log', async () => {
    const none = `--log sqlite:${path.join(folder.path, 'none.db')}`;
    for (const command of ['owners', 'epoch show'])
      expect(await runCli(`${command} ${none}`)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^throughline: There is no log at .*none\.db/) as string,
      });
  });
});
