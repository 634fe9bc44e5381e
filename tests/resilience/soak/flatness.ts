/** Whether what a process holds stays flat: its floor in the last quarter of a run against that in the quarter before. */

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

const FLAT = ['heapBytes', 'externalBytes', 'handles', 'descriptors'] as const;

/**
 * What grew by more than its bound, or was larger than it, in words; empty if all is flat. A floor is what is left after collections and between
 * faults: the least of a quarter.
 */
export function findGrowth(name: string, samples: readonly Sample[], bounds: FlatBounds): string[] {
  const quarter = Math.floor(samples.length / 4);
  if (quarter === 0) return [`${name}: ${samples.length} samples are too few`];
  const floor = (part: readonly Sample[], measure: (typeof FLAT)[number]): number =>
    Math.min(...part.map((sample) => sample[measure]));
  const mostBytes = Math.max(...samples.map(({ rssBytes }) => rssBytes));
  const tooLarge = mostBytes <= bounds.rssBytes ? [] : [`${name}: rssBytes was ${mostBytes}`];
  const grown = FLAT.flatMap((measure) => {
    const before = floor(samples.slice(-2 * quarter, -quarter), measure);
    const after = floor(samples.slice(-quarter), measure);
    return after - before <= bounds[measure] ? [] : [`${name}: ${measure} grew from ${before} to ${after}`];
  });
  return [...tooLarge, ...grown];
}
