import { encodeText } from '@throughline/protocol';
import type { RecordInput } from '@throughline/protocol';

/** The record that a caller appends as part of its append `index`: derived, so that parent and child agree. */
export function killRecord(caller: string, index: number, part: number): RecordInput {
  return {
    key: encodeText(caller),
    value: encodeText(`${index}.${part} ${'abcdefghij'.repeat((index * 7) % 200)}`),
    headers: [['v', encodeText('1')]],
  };
}
