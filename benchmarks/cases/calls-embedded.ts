/** Calls on the embedded log against the official SDK's server with its event store in memory. */
import { mkdtempSync, openSync, closeSync, fsyncSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Caller } from '../lib/caller.ts';
import { median } from '../lib/figures.ts';
import { cpuMs } from '../lib/process-usage.ts';
import { startProduct } from '../lib/product.ts';
import { plainRow, ratioRow } from '../lib/result.ts';
import type { BenchCase } from '../lib/result.ts';
import { startPeer } from '../lib/start-peer.ts';

const ROUNDS = 12;
const CALLS = 60;
const CALLERS = 32;
const SECONDS = 4;
const PAIRS = 3;
const TEXT = 'x'.repeat(200);

export const callsEmbedded: BenchCase = {
  name: 'calls on the embedded log',
  async run() {
    await using product = await startProduct({ shape: 'serve' });
    await using sdk = await startPeer('sdk-server');
    const ours = new Caller(product.url);
    const theirs = new Caller(sdk.line);
    await ours.initialize();
    await theirs.initialize();
    const samples = { look: [] as number[], act: [] as number[], sdk: [] as number[] };
    for (let round = 0; round <= ROUNDS; round += 1)
      for (const name of ['sdk', 'look', 'act'] as const)
        for (let call = 0; call < CALLS; call += 1) {
          const ms = await (name === 'sdk' ? theirs.call('look', { text: TEXT }) : ours.call(name, { text: TEXT }));
          if (round > 0) samples[name].push(ms);
        }
    ours.close();
    theirs.close();
    const floor = median(samples.sdk);
    return {
      name: this.name,
      setup: `serve (one process) on a file, synchronous=full; the SDK v1 server with an event store in memory; ${ROUNDS} alternating rounds of ${CALLS} calls one after the other, text of ${TEXT.length} bytes`,
      rows: [
        ratioRow('call without effects, p50', median(samples.look), floor, 'ms', { most: 2 }),
        ratioRow('call with effects, p50', median(samples.act), floor, 'ms', { most: 2 }),
        plainRow('write and fsync of 4 KiB on this disk, p50', measureFsync(), 'ms'),
      ],
    };
  },
};

export const callersAtOnce: BenchCase = {
  name: '32 callers at once',
  async run() {
    await using product = await startProduct({ shape: 'serve' });
    await using sdk = await startPeer('sdk-server');
    const sides = [
      { url: sdk.line, pid: sdk.pid, rates: [] as number[], costs: [] as number[] },
      { url: product.url, pid: product.pids()[0] ?? 0, rates: [] as number[], costs: [] as number[] },
    ] as const;
    for (let pair = 0; pair <= PAIRS; pair += 1)
      for (const side of sides) {
        const { rate, cost } = await load(side.url, side.pid);
        if (pair === 0) continue;
        side.rates.push(rate);
        side.costs.push(cost);
      }
    const [theirs, ours] = sides;
    return {
      name: this.name,
      setup: `${CALLERS} sessions, one call each at a time, ${PAIRS} alternating rounds of ${SECONDS} s after one to warm up, call without effects; the load comes from one more process on the same cores`,
      rows: [
        ratioRow('calls a second', median(ours.rates), median(theirs.rates), '/s', { least: 0.5 }),
        ratioRow('CPU a call', median(ours.costs), median(theirs.costs), 'ms', { most: 2.5 }),
      ],
    };
  },
};

async function load(url: string, pid: number): Promise<{ rate: number; cost: number }> {
  const callers = Array.from({ length: CALLERS }, () => new Caller(url));
  await Promise.all(callers.map((caller) => caller.initialize()));
  const before = cpuMs(pid);
  const startedAt = performance.now();
  let calls = 0;
  await Promise.all(
    callers.map(async (caller) => {
      while (performance.now() - startedAt < SECONDS * 1000) {
        await caller.call('look', { text: TEXT });
        calls += 1;
      }
    }),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  const cost = (cpuMs(pid) - before) / calls;
  for (const caller of callers) caller.close();
  return { rate: calls / seconds, cost };
}

function measureFsync(): number {
  const folder = mkdtempSync(path.join(tmpdir(), 'bench-fsync-'));
  const file = openSync(path.join(folder, 'file'), 'w');
  const page = new Uint8Array(4096);
  const samples = Array.from({ length: 200 }, () => {
    const startedAt = performance.now();
    writeSync(file, page);
    fsyncSync(file);
    return performance.now() - startedAt;
  });
  closeSync(file);
  rmSync(folder, { recursive: true });
  return median(samples);
}
