/** The operator's commands beside a running `serve`, on a log file. */
import { makeScratchFolder, RawClient, startThroughline } from '@throughline/testkit/processes';
import type { ScratchFolder, ThroughlineProcess } from '@throughline/testkit/processes';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

  it('[CLI-EPOCH] rotate says what it would do, does it with --yes, and show tells both epochs and the reason', async () => {
    const client = await RawClient.connect(serve.url);
    const before = client.sessionId.split('.')[0] ?? '';
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
