import { startLocalKafka } from '@throughline/testkit/kafka';
import { makeScratchFolder, startThroughline } from '@throughline/testkit/processes';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describeKafka } from '@throughline/log/kafka';
import { systemClock } from '@throughline/log';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { makeSecret } from '../auth-tokens.ts';
import type { Finding } from './doctor-codes.ts';
import { runCli } from './testing/run-cli.ts';

const found = inject('kafka');
const brokers = found?.brokers ?? [];
const prefix = `doctor-${process.pid}-${Date.now()}`;
const options = `--log kafka://${brokers.join(',')} --prefix ${prefix}`;

async function doctor(
  more = '',
): Promise<{ code: number; of: (code: string) => Finding | undefined; notOk: string[] }> {
  const { code, stdout } = await runCli(`doctor --json ${options}${more}`);
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
  return {
    code,
    of: (wanted) => findings.find((each) => each.code === wanted),
    notOk: findings.filter(({ level }) => level !== 'ok').map(({ code: each, level }) => `${each}: ${level}`),
  };
}

describe.skipIf(found === null)('doctor on a broker', { timeout: 120_000 }, () => {
  const folder = makeScratchFolder();
  afterAll(() => {
    folder[Symbol.dispose]();
  });

  it('[CLI-DOCTOR] names missing topics and the command that makes them; then all is well but what one broker cannot have', async () => {
    const before = await doctor();
    expect(before.code).toBe(1);
    expect(before.of('topics-exist')).toMatchObject({
      level: 'fail',
      fix: `throughline topics apply ${options}`,
    });
    expect((await runCli(`topics apply --replication 1 --partitions 2 ${options}`)).code).toBe(0);
    const secrets = path.join(folder.path, 'secrets');
    writeFileSync(secrets, `${makeSecret()}\n`);
    await using serve = await startThroughline('serve', {
      folder: folder.path,
      args: [...options.split(' '), '--secrets-file', secrets],
    });
    expect(serve.isRunning()).toBe(true);
    const well = await doctor(` --partitions 2 --secrets-file ${secrets}`);
    expect(well.code).toBe(0);
    // Test brokers make topics by themselves, and there is one of them.
    expect(well.notOk.filter((each) => !/^(replication|auto-create): warn$/.test(each))).toEqual([]);
    expect(well.of('owners')?.what).toBe('1 workers own all 2 partitions');
    expect(well.of('broker-versions')?.what).toMatch(/^1: Kafka (3\.9|4)/);
    expect(well.of('group')?.what).toBe(`${prefix}.workers: Stable, 1 members`);

    const ill = `${options}-ill`;
    expect((await runCli(`topics apply --replication 1 --retention 1h --max-message 128KiB ${ill}`)).code).toBe(0);
    const { code, stdout } = await runCli(`doctor --json --lease 1h ${ill}`);
    expect(code).toBe(1);
    const { findings } = JSON.parse(stdout) as { findings: Finding[] };
    const failed = findings.filter(({ level }) => level === 'fail').map(({ code: each }) => each);
    expect(failed).toEqual(['max-message', 'group-timeouts', 'retention']);
  });

  it('[CLI-DOCTOR] on a cluster that just began and has no topics each finding has a fix, and the group is known', async ({
    skip,
  }) => {
    if (process.env['KAFKA_BROKERS'] !== undefined) skip();
    // The first who asks for a group has its coordinator made, which takes a moment.
    const fresh = await startLocalKafka();
    try {
      const { code, stdout } = await runCli(`doctor --json --log kafka://${fresh.brokers.join(',')}`);
      expect(code).toBe(1);
      const { findings } = JSON.parse(stdout) as { findings: Finding[] };
      expect(findings.find((each) => each.code === 'group')).toMatchObject({ level: 'ok' });
      const apply = `throughline topics apply --log kafka://${fresh.brokers.join(',')}`;
      expect(findings.find((each) => each.code === 'log-opens')).toMatchObject({ level: 'fail', fix: apply });
      for (const each of findings.filter(({ level }) => level !== 'ok'))
        expect(each, each.code).toMatchObject({ fix: expect.stringMatching(/\S/) as string });
      expect(
        findings
          .filter(({ level, code: each }) => level === 'unknown' || each === 'topics-exist')
          .map(({ fix }) => fix),
      ).toEqual(Array(7).fill(apply));
    } finally {
      await fresh.stop();
    }
  });

  it('[CLI-DOCTOR] a cluster that does not answer is one finding, in bounded time', async () => {
    const { code, stdout } = await runCli('doctor --json --log kafka://127.0.0.1:1');
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ findings: [{ code: 'cluster-reachable', level: 'fail' }] });
  });

  it('[KAFKA-FACTS] the facts of a prefix without topics say so, and still tell brokers and group', async () => {
    const facts = await describeKafka({ brokers, clientId: 'test', clock: systemClock }, `${prefix}-none`);
    expect(facts.cluster).toMatchObject({ known: true });
    expect(facts.brokers[0]?.abilities).toMatchObject({ known: true, value: { missing: [] } });
    expect(facts.topics.map(({ partitions }) => partitions)).toEqual(Array(5).fill({ known: true, value: null }));
    expect(facts.group).toMatchObject({ known: true, value: { members: [] } });
    expect(facts.brokerSettings).toMatchObject({ known: true });
  });
});
