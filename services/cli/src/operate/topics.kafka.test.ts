import { describe, expect, inject, it } from 'vitest';
import { runCli } from './testing/run-cli.ts';

const found = inject('kafka');
const log = `kafka://${found?.brokers.join(',') ?? ''}`;

describe.skipIf(found === null)('throughline topics on a broker', () => {
  it('[CLI-TOPICS] diff and show say 1 until apply has made the topics, and apply says 1 when it refuses', async () => {
    const prefix = `topics-${process.pid}-${Date.now()}`;
    const run = (line: string) => runCli(`${line} --log ${log} --prefix ${prefix}`);
    expect(await run('topics diff')).toMatchObject({ code: 1, stdout: expect.stringContaining('missing') as string });
    expect(await run('topics show')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(
        `\n5 missing; run \`throughline topics apply --log ${log} --prefix ${prefix}\`\n`,
      ) as string,
    });
    // Of every command that needs them, in the same words.
    expect(await run('owners')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`; run \`throughline topics apply --log ${log} --prefix ${prefix}\`\n`) as string,
    });
    expect(await run('topics apply')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('write --replication 1') as string,
    });
    expect(await run('topics apply --replication 1 --partitions 2')).toMatchObject({ code: 0 });
    expect(await run('topics diff')).toMatchObject({ code: 0 });
    expect(await run('topics diff --partitions 12')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('2 -> 12') as string,
    });
    expect(await run('topics diff --partitions 2')).toMatchObject({
      code: 0,
      stdout: 'The topics are as they should be.\n',
    });
    expect(await run('topics apply --partitions 2')).toMatchObject({ code: 0 });
    const refused = await run('topics apply --partitions 1 --json');
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({ changes: [{ kind: 'refused' }, {}, {}] });
    const shown = await run('topics show --json');
    expect(shown.code).toBe(0);
    expect(JSON.parse(shown.stdout)).toMatchObject({
      topics: [
        { topic: 'inbound', name: `${prefix}.inbound`, partitions: 2, settings: { 'min.insync.replicas': '1' } },
        { topic: 'events', settings: { 'message.timestamp.type': 'LogAppendTime', 'max.message.bytes': '8388608' } },
        { topic: 'sessions', settings: { 'cleanup.policy': 'compact' } },
        { topic: 'meta', partitions: 1 },
        { topic: 'dead-letter', partitions: 1 },
      ],
    });
  });

  it('[CLI-TOPICS] a cluster that does not answer is said in one line, with exit code 1', async () => {
    const { code, stderr } = await runCli('topics show --log kafka://127.0.0.1:1');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^throughline: the cluster does not answer: .*\n$/);
  });
});
