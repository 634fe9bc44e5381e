/**
 * Fuzzing that repeats: seeded, bounded in time, and with all that it ever found tried first. `FUZZ_SEED=<number>` repeats
 * a run, `FUZZ_MS=<number>` is the time of each target; without it a second, a minute with DEEP=1.
 */
import process from 'node:process';
import fc from 'fast-check';

const CHANGE_MS = 1000;
const DEEP_MS = 60_000;
/** More than any machine does in that time. */
const ENDLESS = 1_000_000_000;

/** Longest time of a target, for the deadline of its test. */
export const FUZZ_DEADLINE_MS = 180_000;

export interface FuzzOptions<T> {
  /** Inputs that once broke something: tried first. */
  readonly finds?: readonly T[];
  /** Milliseconds in the change lane. Default 1000. */
  readonly changeMs?: number;
}

interface Run {
  readonly seed: number;
  readonly ms: number;
  tried: number;
}

function beginRun(changeMs = CHANGE_MS): Run {
  return {
    seed: Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31)),
    ms: Number(process.env['FUZZ_MS'] ?? (process.env['DEEP'] === '1' ? DEEP_MS : changeMs)),
    tried: 0,
  };
}

function parametersOf<T>({ seed, ms }: Run, { finds = [] }: FuzzOptions<T>): fc.Parameters<[T]> {
  return {
    seed,
    numRuns: ENDLESS,
    interruptAfterTimeLimit: ms,
    markInterruptAsFailure: false,
    examples: finds.map((find): [T] => [find]),
  };
}

function tell(target: string, { tried, ms, seed }: Run): void {
  process.stdout.write(`fuzz ${target}: ${tried} inputs in ${ms} ms, FUZZ_SEED=${seed}\n`);
}

/**
 * Gives `check` inputs until the time is over. Throws with the smallest input found that it does not stand, and the seed.
 * Returns how many inputs were tried; says so on stdout, with the seed.
 */
export function fuzz<T>(
  target: string,
  inputs: fc.Arbitrary<T>,
  check: (input: T) => void,
  options: FuzzOptions<T> = {},
): number {
  const run = beginRun(options.changeMs);
  try {
    fc.assert(
      fc.property(inputs, (input) => {
        run.tried++;
        check(input);
      }),
      parametersOf(run, options),
    );
  } finally {
    tell(target, run);
  }
  return run.tried;
}

/** The same for what takes time; one input after the other. */
export async function fuzzAsync<T>(
  target: string,
  inputs: fc.Arbitrary<T>,
  check: (input: T) => Promise<void>,
  options: FuzzOptions<T> = {},
): Promise<number> {
  const run = beginRun(options.changeMs);
  let last = Promise.resolve();
  try {
    await fc.assert(
      fc.asyncProperty(inputs, async (input) => {
        run.tried++;
        last = check(input);
        await last;
      }),
      parametersOf(run, options),
    );
    // The end of the time does not wait for the input that is being tried.
    await last;
  } finally {
    await last.catch(() => undefined);
    tell(target, run);
  }
  return run.tried;
}

/** What parsers stumble over. */
const PIECES = [
  ...[
    '',
    '\0',
    '\n',
    '\r',
    '\r\n',
    '\n\n',
    '\r\n\r\n',
    ' ',
    '\t',
    ':',
    ',',
    '.',
    '~',
    '/',
    '"',
    '\\',
    '\\u',
    '%00',
    '%0d%0a',
  ],
  ...['{', '}', '[', ']', '[[[[', '{}', '[]', 'null', 'true', '-0', '0', '00', '-1', '1e999', '1.5', '0x10', '+1'],
  ...['9007199254740991', '9007199254740992', '99999999999999999999', '__proto__', 'constructor', 'toString', 'then'],
  ...['\uFEFF', '\u2028', '\u00ff', '😀', '\\ud800', 'data: ', 'id: ', 'event: ', 'retry: ', ': '],
].map((text) => Buffer.from(text));
/** Bytes that are no UTF-8: an overlong slash, a surrogate, a cut sequence, none of its bytes. */
const BROKEN = [[0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf0, 0x9f], [0xff, 0xfe], [0x80]].map((bytes) =>
  Buffer.from(bytes),
);

const piece = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...PIECES) },
  { weight: 1, arbitrary: fc.constantFrom(...BROKEN) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)) },
);
const place = fc.nat(0xffff);

type Edit = (bytes: Buffer) => Buffer;

/** Where `at`, which is any number, falls in `bytes`. */
const within = (bytes: Buffer, at: number): number => at % (bytes.length + 1);

const edit: fc.Arbitrary<Edit> = fc.oneof(
  fc.tuple(place, piece).map(([at, added]): Edit => (bytes) => {
    const to = within(bytes, at);
    return Buffer.concat([bytes.subarray(0, to), added, bytes.subarray(to)]);
  }),
  fc.tuple(place, piece).map(([at, put]): Edit => (bytes) => {
    const to = within(bytes, at);
    return Buffer.concat([bytes.subarray(0, to), put, bytes.subarray(to + put.length)]);
  }),
  fc.tuple(place, fc.nat(20)).map(([at, count]): Edit => (bytes) => {
    const from = within(bytes, at);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + count)]);
  }),
  fc.tuple(place, fc.nat(40), fc.integer({ min: 2, max: 50 })).map(([at, count, times]): Edit => (bytes) => {
    const from = within(bytes, at);
    const repeated = Array.from({ length: times }, () => bytes.subarray(from, from + count));
    return Buffer.concat([bytes.subarray(0, from), ...repeated, bytes.subarray(from + count)]);
  }),
  place.map(
    (at): Edit =>
      (bytes) =>
        bytes.subarray(0, within(bytes, at)),
  ),
  fc.tuple(place, fc.nat(7)).map(([at, bit]): Edit => (bytes) => {
    const changed = Buffer.from(bytes);
    const index = at % Math.max(1, bytes.length);
    changed[index] = (changed[index] ?? 0) ^ (1 << bit);
    return changed;
  }),
);

/** One of `valid` with a few edits, or none; and now and then anything at all. */
export function mutations(valid: readonly (string | Uint8Array)[]): fc.Arbitrary<Buffer> {
  const corpus = valid.map((entry): Buffer => Buffer.from(entry as string));
  return fc.oneof<fc.MaybeWeightedArbitrary<Buffer>[]>(
    {
      weight: 9,
      arbitrary: fc
        .tuple(fc.constantFrom(...corpus), fc.array(edit, { maxLength: 5 }))
        .map(([bytes, edits]) => edits.reduce<Buffer>((edited, apply) => apply(edited), bytes)),
    },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  );
}

/** The same as text, whatever the bytes. */
export function textMutations(valid: readonly string[]): fc.Arbitrary<string> {
  return mutations(valid).map((bytes) => bytes.toString('utf8'));
}

/** `bytes` in pieces, cut at any places. */
export function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((one, other) => one - other);
  return [0, ...places].map((from, index) => bytes.subarray(from, places[index] ?? bytes.length));
}
