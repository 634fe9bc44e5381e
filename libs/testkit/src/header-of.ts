import { decodeText } from '@throughline/protocol';
import type { RecordInput } from '@throughline/protocol';

/** The text of the first header of that name. */
export function headerOf({ headers }: Pick<RecordInput, 'headers'>, name: string): string | undefined {
  const value = headers.find(([known]) => known === name)?.[1];
  return value === undefined ? undefined : decodeText(value);
}
