/** docs/operations/health.md: what it says of processes that run is what they answer. Their start, brokers that are away and a broken history have tests of their own. */
import { readFileSync } from 'node:fs';
import { makeScratchFolder, RawClient, startThroughline, waitUntil } from '@throughline/testkit/processes';
import type { ThroughlineProcess } from '@throughline/testkit/processes';
import { GatewayConfigSchema } from '@throughline/gateway/config';
import { WorkerConfigSchema } from '@throughline/worker/config';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const read = (name: string): string => readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8');
const PAGE = read('docs/operations/health.md');

/** Status of `/livez` and `/readyz` by the page. */
function promised(process: string, does: string): string[] {
  const rows = PAGE.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
  const row = rows.find(([, who = '', what = '']) => who.startsWith(process) && what.startsWith(does));
  return row?.slice(3, 5) ?? [];
}

async function answered(adminUrl: string): Promise<string[]> {
  const status = async (path: string): Promise<string> => {
    const response = await fetch(`${adminUrl}${path}`, { signal: AbortSignal.timeout(10_000) });
    return String(response.status);
  };
  return [await status('/livez'), await status('/readyz')];
}

/** Of a process that stops: before it is gone. */
async function whileStopping(process: ThroughlineProcess, adminUrl: string): Promise<string[]> {
  const before = await answered(adminUrl);
  const stopping = process.stop();
  let seen = before;
  await waitUntil('another answer', async () => (seen = await answered(adminUrl)).join() !== before.join());
  expect((await stopping).code).toBe(0);
  return seen;
}

describe('health', { timeout: 120_000 }, () => {
  it('[OPS-HEALTH] gateways and workers answer as the page says while they serve, without workers, and while they drain', async () => {
    using folder = makeScratchFolder();
    const options = { folder: folder.path, args: ['--log', 'sqlite:log.db', '--partitions', '1', '--drain', '15s'] };
    await using gateway = await startThroughline('gateway', options);
    expect(await answered(gateway.adminUrl)).toEqual(promised('gateway', 'serves, and no worker lives'));
    await expect(RawClient.connect(gateway.url)).rejects.toThrow(/^initialize: 503 /);

    await using worker = await startThroughline('worker', {
      ...options,
      args: [...options.args, '--admin', '127.0.0.1:0'],
    });
    const workerAdmin = /"adminUrl":"([^"]+)"/.exec(worker.logs())?.[1] ?? '';
    expect(await answered(workerAdmin)).toEqual(promised('worker', 'serves'));
    expect(await answered(gateway.adminUrl)).toEqual(promised('gateway, `serve`', 'serves'));

    const client = await RawClient.connect(gateway.url);
    const slow = await client.callTool(gateway.url, 'countdown', { from: 20, intervalMs: 100 });
    await slow.until('progress', ({ data }) => data.includes('notifications/progress'));
    expect(await whileStopping(worker, workerAdmin)).toEqual(promised('worker', 'drains'));
    await slow.until('the result', ({ data }) => data.includes('"result"'));

    await client.listen(gateway.url);
    expect(await whileStopping(gateway, gateway.adminUrl)).toEqual(promised('gateway', 'drains'));
  });

  it('[OPS-HEALTH] the balancer and the probes are set as the page says, and a stop has the time that it may take', () => {
    expect(read('infra/haproxy/haproxy.cfg')).toMatch(
      /balance roundrobin[^]*option httpchk GET \/readyz\n +http-check expect status 200\n.*check port 9464 inter 1s .*fall 2 rise 1/,
    );
    const [, text = ''] = /```yaml\n([^]*?)```/.exec(PAGE) ?? [];
    const probes = parse(text) as Record<string, { httpGet: { path: string; port: number } }> & {
      terminationGracePeriodSeconds: number;
    };
    expect(probes['readinessProbe']).toMatchObject({ httpGet: { path: '/readyz', port: 9464 }, failureThreshold: 2 });
    expect(probes['livenessProbe']?.httpGet).toEqual({ path: '/livez', port: 9464 });
    const longestMs =
      GatewayConfigSchema.shape.drainMs.parse(undefined) + WorkerConfigSchema.shape.drainMs.parse(undefined) + 15_000;
    expect(probes.terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(longestMs);
  });
});
