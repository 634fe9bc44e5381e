/** A client on stdio that checks nothing, with `throughline connect` before a server that lies: whatever it does, the client is not fooled and does not hang. */
import process from 'node:process';
import { FAULT_NAMES, formatClientCheck, runClientCheck } from '@throughline/client/testing';
import type { CheckedRun, ClientCheckOptions, ConnectClient, FaultName } from '@throughline/client/testing';
import { makeScratchFolder } from '@throughline/testkit/processes';
import { describe, expect, it } from 'vitest';
import { connectInProcess } from '../../services/cli/src/connect/testing/connect-in-process.ts';
import type { HeardMessage } from '../../services/cli/src/connect/testing/connect-in-process.ts';
import { spawnBridge } from '../e2e/bridge-process.ts';

const ARGS = ['--give-up', '3s', '--linger', '10ms'] as const;

/** What a client that checks nothing uses of a bridge. */
interface Bridge {
  readonly messages: readonly HeardMessage[];
  stderr(): string;
  type(message: object): void;
  answer(id: string | number): Promise<HeardMessage>;
  close(): Promise<void>;
}

const asProcess = (url: string, policy: Policy): Bridge => {
  const folder = makeScratchFolder();
  const bridge = spawnBridge(url, [...ARGS, '--policy', policy, '--state-folder', folder.path], { cwd: folder.path });
  return {
    ...bridge,
    async close() {
      bridge.kill();
      await bridge.ended();
      folder[Symbol.dispose]();
    },
  };
};

/** The same without a process of its own, for many at once. */
const inProcess = (url: string, policy: Policy): Bridge => {
  const folder = makeScratchFolder();
  const bridge = connectInProcess(url, [...ARGS, '--policy', policy, '--state-folder', folder.path], folder.path);
  return {
    ...bridge,
    async close() {
      await bridge.close();
      folder[Symbol.dispose]();
    },
  };
};

type Policy = 'strict' | 'compatible';

const behind =
  (open: (url: string, policy: Policy) => Bridge, policy: Policy): ConnectClient =>
  async (url, reports) => {
    const bridge = open(url, policy);
    let heard = 0;
    const hear = (): void => {
      for (const { method, params } of bridge.messages.slice(heard))
        if (method === 'notifications/message') reports.event(params?.['data']);
      heard = bridge.messages.length;
      if (bridge.stderr().includes('the session is over')) reports.refused();
      if (bridge.stderr().includes('goes on, but this server does not prove')) reports.unproven();
    };
    const listening = setInterval(hear, 5);
    let id = 0;
    bridge.type({
      id: 'init',
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'naive', version: '1' } },
    });
    const { error } = await bridge.answer('init');
    if (error !== undefined) throw new Error(error.message);
    bridge.type({ method: 'notifications/initialized' });
    return {
      async callTool(name, args) {
        bridge.type({ id: ++id, method: 'tools/call', params: { name, arguments: args } });
        const answer = await bridge.answer(id);
        hear();
        if (answer.error !== undefined) throw Object.assign(new Error(answer.error.message), answer.error);
        const [first] = (answer.result?.['content'] ?? []) as { text?: string }[];
        return first?.text ?? '';
      },
      async close() {
        clearInterval(listening);
        await bridge.close();
      },
    };
  };

/** It waits 45 s for a server that has sent keepalives. */
const SILENT: readonly FaultName[] = ['silent-stream'];
const SILENT_BOUND_MS = 75_000;

/** Those that are not right a second time, with more time: on a busy machine what would come to an end looks like a hang. */
async function check(connectClient: ConnectClient, options: ClientCheckOptions): Promise<readonly CheckedRun[]> {
  const { runs, wrong } = await runClientCheck(connectClient, options);
  if (wrong.length === 0) return runs;
  const [faults, dialects] = [wrong.map(({ fault }) => fault), wrong.map(({ dialect }) => dialect)];
  const again = await runClientCheck(connectClient, {
    ...options,
    faults: [...new Set(faults)],
    dialects: [...new Set(dialects)],
    boundMs: 60_000,
    atOnce: 3,
  });
  return runs.map((run) => again.runs.find((each) => each.fault === run.fault && each.dialect === run.dialect) ?? run);
}

function expectRight(runs: readonly CheckedRun[]): void {
  const wrong = runs.filter(({ isRight }) => !isRight);
  expect(
    wrong.map(({ fault, dialect, verdict, wasShown, call }) => ({ fault, dialect, verdict, wasShown, call })),
    formatClientCheck({ runs, wrong }),
  ).toEqual([]);
  expect(runs.filter(({ verdict }) => verdict === 'fooled' || verdict === 'hangs' || verdict === 'ran-twice')).toEqual(
    [],
  );
}

describe('a client behind the bridge', () => {
  it('[CONNECT-REFUSES] [CONNECT-NEVER-FOOLED] is not fooled by a history that is lost or another one, nor by an answer on the wrong stream, and does not hang', async () => {
    const faults = ['gap-continuous-ids', 'answer-on-wrong-stream', 'post-empty-200'] as const;
    expectRight(await check(behind(asProcess, 'strict'), { faults, dialects: ['throughline'], boundMs: 60_000 }));
  }, 240_000);

  const anyRow = async (policy: Policy): Promise<void> => {
    const faults = FAULT_NAMES.filter((name) => !SILENT.includes(name));
    const runs = await check(behind(inProcess, policy), { faults, boundMs: 10_000 });
    expect(runs).toHaveLength(3 * 36);
    expectRight(runs);
  };

  it('[CONNECT-NEVER-FOOLED] is not fooled by any row of the table in any dialect, and does not hang', async () => {
    await anyRow('strict');
  }, 600_000);

  describe.runIf(process.env['DEEP'] === '1')('in the deep lane', () => {
    it('[CONNECT-NEVER-FOOLED] nor under compatible', async () => {
      await anyRow('compatible');
    }, 600_000);

    it('[CONNECT-NEVER-FOOLED] a silent server is noticed by its missing keepalives', async () => {
      expectRight(await check(behind(inProcess, 'strict'), { faults: SILENT, boundMs: SILENT_BOUND_MS }));
    }, 400_000);
  });
});
