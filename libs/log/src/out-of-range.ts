import type { Offset } from '@throughline/protocol';
import { LogError } from './errors.ts';
import type { Bounds } from './port.ts';

/** The refusal to read at `position`; `null` if it may be read. SPEC: LOG-BOUNDS-REFUSAL. */
export function outOfRange(position: Offset, { start, end }: Bounds): LogError | null {
  if (position >= start && position <= end) return null;
  const where = position < start ? 'below the start' : 'above the end';
  return new LogError('OFFSET_OUT_OF_RANGE', `offset ${position} is ${where}: held are ${start} to ${end}`, {
    start,
    end,
  });
}
