/** Whether a stream is at its end behind a record: then nothing of it can follow. */
import { follow } from '@throughline/history';
import type { Following } from '@throughline/history';
import { readEventRecord } from '@throughline/protocol';
import type { LogRecord } from '@throughline/protocol';
import type { PartitionTail } from './partition-tail.ts';

/** @param record one that the tail has read past; of whatever session. @param key that of the stream's session. */
export function endsStream(
  tail: Pick<PartitionTail, 'claims'>,
  key: string,
  following: Following,
  record: LogRecord,
): boolean {
  const event = readEventRecord(record);
  if ('unreadable' in event || event.key !== key || tail.claims().judge(event) !== 'accepted') return false;
  const [, step] = follow(following, event);
  return step.do === 'deliver' && step.end;
}
