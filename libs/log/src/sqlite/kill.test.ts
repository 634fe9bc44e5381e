import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readAll, showInput } from '../conformance/records.ts';
import { sleep } from '../clock.ts';
import type { LogRecord } from '@throughline/protocol';
import type { Log } from '../port.ts';
import { systemClock } from '../system.ts';
import { killRecord } from './kill-record.ts';
import { makeScratchDirectory } from './scratch-directory.ts';
import type { ScratchDirectory } from './scratch-directory.ts';

const DEEP = process.env['DEEP'] === '1';
const ROUNDS = DEEP ? 100 : 15;
const CHILDREN = 2;
const CHILD = fileURLToPath(new URL('./kill-child.ts', import.meta.url));

interface Ack {
  readonly partition: number;
  readonly first: number;
  readonly count: number;
  readonly caller: string;
  readonly index: number;
}

let scratch: ScratchDirectory;
beforeEach(() => {
  scratch = makeScratchDirectory();
});
afterEach(async () => {
  await scratch.dispose();
});

/** mulberry32 */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Doomed {
  /** Resolves with the first ack. */
  readonly alive: Promise<null>;
  /** SIGKILL; resolves with what was acked before. */
  kill(): Promise<Ack[]>;
}

function startChild(name: string): Doomed {
  const child: ChildProcess = spawn(process.execPath, ['--conditions=@throughline/source', CHILD, scratch.file, name], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  let complaint = '';
  const alive = Promise.withResolvers<null>();
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      alive.reject(new Error(`the child ended before it acked: ${complaint}`));
      resolve();
    });
  });
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    if (said.includes('\n')) alive.resolve(null);
  });
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  alive.promise.catch(() => undefined);
  return {
    alive: alive.promise,
    async kill() {
      child.kill('SIGKILL');
      await ended;
      // The last line may be cut.
      return said
        .split('\n')
        .slice(0, -1)
        .map((line) => {
          const [partition, first, count, caller, index] = line.split(' ');
          return {
            partition: Number(partition),
            first: Number(first),
            count: Number(count),
            caller: caller!,
            index: Number(index),
          };
        });
    },
  };
}

/** Every ack at its offset with its bytes; appends of a caller whole, in order, none twice. */
function check(acks: readonly Ack[], records: readonly LogRecord[], seed: number): void {
  const byOffset = new Map(records.map((record) => [record.offset, record]));
  for (const ack of acks)
    for (let part = 0; part < ack.count; part++) {
      const record = byOffset.get(ack.first + part);
      const wanted = showInput(killRecord(ack.caller, ack.index, part));
      expect(record === undefined ? null : showInput(record), `${JSON.stringify(ack)} seed ${seed}`).toEqual(wanted);
    }
  expect(
    records.map((record) => record.offset),
    `offsets, seed ${seed}`,
  ).toEqual(records.map((_, index) => index));
  const next = new Map<string, string[]>();
  for (const record of records) {
    const caller = new TextDecoder().decode(record.key);
    const name = new TextDecoder().decode(record.value).split(' ')[0]!;
    next.set(caller, [...(next.get(caller) ?? []), name]);
  }
  for (const [caller, names] of next) {
    const wanted: string[] = [];
    for (let index = 0; wanted.length < names.length; index++)
      for (let part = 0; part < 1 + (index % 3); part++) wanted.push(`${index}.${part}`);
    expect(names, `appends of ${caller}, seed ${seed}`).toEqual(wanted);
  }
}

describe('sqlite log: kill -9', () => {
  it(
    '[LOG-KILL] what was acked to a process that was killed is in the log at its offset with its bytes',
    { timeout: DEEP ? 300_000 : 60_000 },
    async ({ annotate }) => {
      const seed = Number(process.env['SEED'] ?? (Math.random() * 2 ** 31) | 0);
      await annotate(`seed ${seed}`);
      const unit = random(seed);
      const acks: Ack[] = [];
      const startRound = (round: number): Doomed[] =>
        Array.from({ length: CHILDREN }, (_, index) => startChild(`${round}-${index}`));
      let next = startRound(0);
      for (let round = 0; round < ROUNDS; round++) {
        const doomed = next;
        // The next ones start, and open the file, while these append and are killed.
        next = round + 1 < ROUNDS ? startRound(round + 1) : [];
        const killed = await Promise.all(
          doomed.map(async (child) => {
            await child.alive;
            await sleep(systemClock, unit() * 60);
            return child.kill();
          }),
        );
        acks.push(...killed.flat());
        // Now and then a fresh process looks: it recovers the file as after a crash of all.
        if (round % 5 === 4) await lookAt(acks, seed);
      }
      await lookAt(acks, seed);
      expect(acks.length).toBeGreaterThan(ROUNDS * CHILDREN);
    },
  );
});

async function lookAt(acks: readonly Ack[], seed: number): Promise<void> {
  const { log }: { log: Log } = await scratch.open();
  for (const partition of [0, 1]) {
    const records = await readAll(log, { topic: 'events', partition }, 0);
    check(
      acks.filter((ack) => ack.partition === partition),
      records,
      seed,
    );
  }
  await log.close();
}
