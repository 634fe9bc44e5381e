import { encodeText } from '@throughline/protocol';
import { expect, it } from 'vitest';
import { systemClock } from '../system.ts';
import { createClusterMap } from './cluster-map.ts';
import { openConnection } from './connection.ts';
import { createLanePool, makeLane } from './lanes.ts';
import { createReadSources } from './read-sources.ts';
import { readPartition } from './reader.ts';
import { startFakeBroker } from './testing/fake-broker.ts';
import type { FakeBroker, FakeFetched } from './testing/fake-broker.ts';
import { encodeBatch } from './wire/record-batch.ts';

const NOT_LEADER = 6;
const UNKNOWN_TOPIC = 3;

/** One record at `offset`, the last of the log. */
function recordAt(offset: number): FakeFetched {
  const stamp = { timestampMs: 1000, producerId: -1n, producerEpoch: -1, firstSequence: -1 };
  const batches = Buffer.from(encodeBatch([{ key: null, value: encodeText(`at ${offset}`), headers: [] }], stamp));
  batches.writeBigInt64BE(BigInt(offset), 0);
  return { error: 0, end: offset + 1, batches };
}

it('[KAFKA-SOURCE] reads on one way have one source; it is another after a failure within a read, a lost connection, and a change of the leader', async () => {
  await using stack = new AsyncDisposableStack();
  const ports: number[] = [];
  let leader = { node: 0, epoch: 1 };
  const failures: number[] = [];
  const fetch = (offset: number): FakeFetched => {
    const error = failures.shift();
    return error === undefined ? recordAt(offset) : { error, end: -1, batches: Buffer.alloc(0) };
  };
  const brokers: FakeBroker[] = [];
  for (let node = 0; node < 2; node++) {
    const broker = stack.use(
      await startFakeBroker(
        () => ports,
        () => leader,
        fetch,
      ),
    );
    brokers.push(broker);
    ports.push(broker.port);
  }
  const options = { brokers: ports.map((port) => `127.0.0.1:${port}`), clientId: 'test', clock: systemClock };
  const map = createClusterMap(options);
  const sources = createReadSources();
  const pool = () =>
    createLanePool(
      systemClock,
      () => 4,
      () => makeLane((to) => openConnection(options, to, undefined, sources.noteLoss)),
    );
  const [tails, lookups] = [pool(), pool()];
  stack.defer(() => {
    for (const part of [tails, lookups, map]) part.close();
  });
  const context = {
    clock: systemClock,
    map,
    sources,
    tails,
    lookups,
    readTimeoutMs: 20_000,
    closing: new AbortController().signal,
  };
  const read = async (position: number): Promise<string> => {
    const request = { topic: 't', partition: 0, position, maxBytes: 1000, waitMs: 2000, signal: undefined };
    const { records, source } = await readPartition(context, request);
    expect(records).toMatchObject([{ offset: position }]);
    expect(typeof source).toBe('string');
    return source ?? '';
  };
  const seen = [await read(0)];
  expect(await read(1)).toBe(seen[0]);
  // None of these reads fails for its caller.
  const happened = [
    () => failures.push(NOT_LEADER),
    () => failures.push(UNKNOWN_TOPIC, UNKNOWN_TOPIC),
    () => brokers[0]?.cut(),
    () => {
      leader = { node: 1, epoch: 2 };
      failures.push(NOT_LEADER);
    },
  ];
  for (const [step, happen] of happened.entries()) {
    happen();
    // The client learns that a connection is closed when its loop turns.
    await new Promise<void>((resolve) => systemClock.setTimer(20, resolve));
    const source = await read(2 + step);
    expect(seen, String(step)).not.toContain(source);
    expect(await read(3 + step)).toBe(source);
    seen.push(source);
  }
}, 60_000);
