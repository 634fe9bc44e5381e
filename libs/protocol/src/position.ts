/** Places in the log. An offset is a non-negative safe integer, a partition a non-negative 31-bit integer. */
export type Offset = number;
export type Partition = number;

export const MAX_PARTITION = 2 ** 31 - 1;

const DECIMAL = /^(?:0|[1-9][0-9]{0,15})$/;

/** Reads the one canonical decimal form (no sign, no leading zero); `null` for anything else. */
export function parseOffset(text: string): Offset | null {
  if (!DECIMAL.test(text)) return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : null;
}

export function parsePartition(text: string): Partition | null {
  const value = parseOffset(text);
  return value !== null && value <= MAX_PARTITION ? value : null;
}
