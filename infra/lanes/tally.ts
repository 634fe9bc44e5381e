/** What a lane counts, and how it says so. */

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export interface PartResult extends Tally {
  readonly name: string;
  readonly ms: number;
  /** Why it counts as failed beyond its tests, or why it did not run. */
  readonly note?: string;
}

export function addUp(parts: readonly Tally[]): Tally {
  return {
    passed: sum(parts.map(({ passed }) => passed)),
    failed: sum(parts.map(({ failed }) => failed)),
    skipped: sum(parts.map(({ skipped }) => skipped)),
  };
}

/** The last line of every lane. */
export function formatTally({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`;
}

export function formatMinutes(ms: number): string {
  return (ms / 60_000).toFixed(1);
}

/** A row a part: name, minutes, counts, note. */
export function formatParts(parts: readonly PartResult[]): string {
  const width = Math.max(4, ...parts.map(({ name }) => name.length));
  const rows = parts.map((part) => {
    const note = part.note === undefined ? '' : ` (${part.note})`;
    return `  ${part.name.padEnd(width)}  ${formatMinutes(part.ms).padStart(6)} min  ${formatTally(part)}${note}`;
  });
  return rows.join('\n');
}

/** Fails: a test that failed, or a lane in which nothing passed. */
export function exitCodeOf(parts: readonly Tally[]): number {
  const { passed, failed } = addUp(parts);
  return failed === 0 && passed > 0 ? 0 : 1;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
