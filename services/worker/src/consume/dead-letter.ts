/** Records that cannot be read are never dropped in silence: a copy, with where it stood and why. SPEC: WRK-POISON. */
import type { Log, PartitionRef } from '@throughline/log';
import { encodeText } from '@throughline/protocol';
import type { LogRecord } from '@throughline/protocol';

const DEAD_LETTER = { topic: 'dead-letter', partition: 0 } as const;

/** Errors: those of `Log.append`. */
export async function copyToDeadLetter(log: Log, from: PartitionRef, record: LogRecord, why: string): Promise<void> {
  const headers = [
    ...record.headers,
    ['dead-letter-from', encodeText(`${from.topic}/${from.partition}/${record.offset}`)] as const,
    ['dead-letter-why', encodeText(why)] as const,
  ];
  await log.append(DEAD_LETTER, [{ key: record.key, value: record.value, headers }]);
}
