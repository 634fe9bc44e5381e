/** The inverse of `parse-value.ts`: values as a user would write them. */
import type { Address, LogLocation } from './parse-value.ts';

const DURATIONS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

const SIZES = [
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
] as const;

/** In the largest unit that divides it. */
export function formatDuration(ms: number): string {
  const unit = DURATIONS.find(([, factor]) => ms >= factor && ms % factor === 0);
  return unit === undefined ? `${ms}ms` : `${ms / unit[1]}${unit[0]}`;
}

/** In the largest unit that divides it. */
export function formatSize(bytes: number): string {
  const unit = SIZES.find(([, factor]) => bytes >= factor && bytes % factor === 0);
  return unit === undefined ? String(bytes) : `${bytes / unit[1]}${unit[0]}`;
}

export function formatAddress(address: Address): string {
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

export function formatLog(location: LogLocation): string {
  if (location.kind === 'memory') return 'memory:';
  return location.kind === 'sqlite' ? `sqlite:${location.file}` : `kafka://${location.brokers.join(',')}`;
}
