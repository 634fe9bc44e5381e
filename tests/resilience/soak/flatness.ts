/** Whether what a process holds stays flat over a run. */

export interface Sample {
  readonly heapBytes: number;
  /** Of buffers, outside of the heap. */
  readonly externalBytes: number;
  readonly rssBytes: number;
  readonly handles: number;
  readonly descriptors: number;
}

export interface FlatBounds {
  readonly heapBytes: number;
  readonly externalBytes: number;
  /** At most, ever: the system takes pages back late, so its floor says little. */
  readonly rssBytes: number;
  readonly handles: number;
  readonly descriptors: number;
}

type Measure = Exclude<keyof Sample, 'rssBytes'>;

const FLAT: readonly Measure[] = ['heapBytes', 'externalBytes', 'handles', 'descriptors'];
const PARTS = 8;

/** What was held all the while in each eighth of a run: its least. What a collection or the end of a fault frees is not in it. */
export function floorsOf(samples: readonly Sample[], measure: Measure): number[] {
  const size = Math.floor(samples.length / PARTS);
  // The oldest samples are left out where it does not divide.
  const counted = samples.slice(samples.length - size * PARTS);
  return Array.from({ length: size === 0 ? 0 : PARTS }, (_, part) =>
    Math.min(...counted.slice(part * size, (part + 1) * size).map((sample) => sample[measure])),
  );
}

/**
 * What grew by more than its bound, or was larger than it, in words; empty if all is flat. What is held all through the
 * last quarter is compared with the most that was held through an eighth of the first half: a fault that empties a cache
 * makes a low floor, and what fills it again afterwards is no growth.
 */
export function findGrowth(name: string, samples: readonly Sample[], bounds: FlatBounds): string[] {
  if (samples.length < PARTS) return [`${name}: ${samples.length} samples are too few`];
  const mostBytes = Math.max(...samples.map(({ rssBytes }) => rssBytes));
  const tooLarge = mostBytes <= bounds.rssBytes ? [] : [`${name}: rssBytes was ${mostBytes}`];
  const grown = FLAT.flatMap((measure) => {
    const floors = floorsOf(samples, measure);
    const before = Math.max(...floors.slice(0, PARTS / 2));
    const after = Math.min(...floors.slice(-PARTS / 4));
    return after - before <= bounds[measure] ? [] : [`${name}: ${measure} grew from ${before} to ${after}`];
  });
  return [...tooLarge, ...grown];
}
