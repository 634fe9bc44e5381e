/** What a message record holds for the client. SPEC: GW-POISON. */
import { classifyText, decodeText } from '@throughline/protocol';
import type { EventRecord } from '@throughline/protocol';
import { normalizeData } from './sse.ts';

/**
 * The payload of a message; `null` if the record holds none. What an owner wrote is JSON by construction; what a foreign
 * producer wrote is checked.
 */
export function readMessage({ record, owner }: EventRecord): string | null {
  const text = record.value === null ? '' : decodeText(record.value);
  if (owner !== null) return normalizeData(text);
  return 'fault' in classifyText(text) ? null : normalizeData(text);
}
