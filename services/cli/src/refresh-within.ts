/** An idle stream must get a new id well before the record that its cursor names is evicted. */
const REFRESH_SHARE = 4;
const LEAST_MS = 100;

/** `wantedMs`, or a quarter of the retention if that is less. */
export function refreshWithin(wantedMs: number, retentionMs: number): number {
  return Math.max(LEAST_MS, Math.min(wantedMs, Math.floor(retentionMs / REFRESH_SHARE)));
}
