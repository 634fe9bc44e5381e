import fc from 'fast-check';
import { it } from 'vitest';
import type { Offset } from '@throughline/protocol';
import type { Log, PartitionRef } from '../port.ts';
import type { GetBench, LogHarness } from './harness.ts';
import { showInput, showRecord } from './records.ts';

type Step =
  | { readonly kind: 'append'; readonly handle: number; readonly values: readonly (Uint8Array | null)[] }
  | {
      readonly kind: 'read';
      readonly handle: number;
      readonly place: Place;
      readonly maxBytes: number;
      readonly waitMs: number;
    }
  | { readonly kind: 'evict'; readonly place: Place };

const handle = fc.nat({ max: 1 });
interface Place {
  readonly from: 'start' | 'end';
  readonly by: number;
}
/** Near the borders, where the truth is in several hands. */
const place = fc.record({
  from: fc.constantFrom('start' as const, 'end' as const, 'end' as const),
  by: fc.integer({ min: -2, max: 9 }),
});
const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('append' as const),
        handle,
        values: fc.array(fc.option(fc.uint8Array({ maxLength: 40 })), { minLength: 1, maxLength: 4 }),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('read' as const),
        handle,
        place,
        maxBytes: fc.nat({ max: 120 }),
        waitMs: fc.constantFrom(0, 0, 0, 2),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('evict' as const), place }) },
  ),
  { minLength: 1, maxLength: 40 },
);

/** The whole truth about a partition: what was acked, and where it begins. */
interface Model {
  readonly records: Map<Offset, string>;
  start: Offset;
  end: Offset;
}

async function runStep(
  step: Step,
  model: Model,
  harness: LogHarness,
  handles: readonly Log[],
  ref: PartitionRef,
): Promise<void> {
  const position = ({ from, by }: Place): Offset => Math.max(0, from === 'start' ? model.start + by : model.end - by);
  switch (step.kind) {
    case 'append': {
      const inputs = step.values.map((value) => ({ key: null, value, headers: [] }));
      const { offsets, timestampMs } = await handles[step.handle]!.append(ref, inputs);
      if (offsets[0]! < model.end) throw new Error(`offset ${offsets[0]} was given again`);
      offsets.forEach((offset, index) => {
        model.records.set(offset, JSON.stringify({ offset, timestampMs, record: showInput(inputs[index]!) }));
      });
      model.end = offsets.at(-1)! + 1;
      return;
    }
    case 'evict': {
      if (harness.evict === undefined) return;
      const before = Math.max(model.start, Math.min(model.end, position(step.place)));
      await harness.evict(ref, before);
      model.start = before;
      return;
    }
    case 'read': {
      const at = position(step.place);
      const reading = handles[step.handle]!.read(ref, at, { maxBytes: step.maxBytes, waitMs: step.waitMs });
      if (at < model.start || at > model.end) {
        const code = await reading.then(
          () => 'a batch',
          (error: unknown) => (error as { code?: string }).code,
        );
        if (code !== 'OFFSET_OUT_OF_RANGE')
          throw new Error(`a read at ${at} of ${model.start} to ${model.end} gave ${code}`);
        return;
      }
      const { records, next } = await reading;
      const expected = [...model.records].filter(([offset]) => offset >= at && offset < next).map(([, shown]) => shown);
      const shown = records.map((record) => JSON.stringify(showRecord(record)));
      if (shown.join() !== expected.join())
        throw new Error(`a read at ${at} gave ${shown.join()}, not ${expected.join()}`);
      if (records.length === 0 && [...model.records.keys()].some((offset) => offset >= at && offset >= model.start))
        throw new Error(`a read at ${at} gave nothing, and ${model.end} is the end`);
      return;
    }
  }
}

export function modelCases(bench: GetBench): void {
  it('[LOG-MODEL] any sequence of appends, reads and evictions behaves as an array with a start', async () => {
    const { harness, log } = bench();
    const handles = [log, await harness.open()];
    const ref: PartitionRef = { topic: 'events', partition: 0 };
    const bounds = await log.bounds(ref);
    const model: Model = { records: new Map(), start: bounds.end, end: bounds.end };
    if (harness.evict !== undefined) await harness.evict(ref, bounds.end);
    // Each run goes on where the last one ended; fast-check prints seed and path of a failure.
    await fc.assert(
      fc.asyncProperty(steps, async (run) => {
        for (const step of run) await runStep(step, model, harness, handles, ref);
      }),
      { numRuns: harness.modelRuns ?? 25, endOnFailure: true },
    );
  });
}
