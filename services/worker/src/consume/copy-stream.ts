/** Reads what was written on a call's stream, so that a repetition of the call gets the same. SPEC: WRK-ALIAS. */
import type { ClaimHistory } from '@throughline/history';
import type { Log } from '@throughline/log';
import { decodeText, formatTarget, readEventRecord, STANDALONE } from '@throughline/protocol';
import type { Offset, Partition, StreamLabel } from '@throughline/protocol';

export interface CopyOptions {
  readonly log: Pick<Log, 'read'>;
  readonly partition: Partition;
  claims(): ClaimHistory;
  readonly key: string;
  readonly stream: StreamLabel;
  /** Everything of the stream lies at or after it. */
  readonly from: Offset;
  readonly below: Offset;
  /** Offset of the request in `inbound`: of a batch only its own answer is taken. */
  readonly answers: Offset;
  readonly signal: AbortSignal;
}

export interface Copied {
  readonly json: string;
  readonly answer: boolean;
}

/**
 * Messages in order, the answer last; read as they are asked for. Errors: `OFFSET_OUT_OF_RANGE` if the beginning is no
 * longer held, and those of `Log.read`.
 */
export async function* copyStream(options: CopyOptions): AsyncGenerator<Copied, void, undefined> {
  const { log, partition, claims, key, stream, below, answers, signal } = options;
  const label = formatTarget(stream);
  let position = options.from;
  while (position < below) {
    const batch = await log.read({ topic: 'events', partition }, position, { signal });
    for (const record of batch.records) {
      if (record.offset >= below) return;
      const event = readEventRecord(record);
      if (
        'unreadable' in event ||
        event.key !== key ||
        event.body.type !== 'message' ||
        event.body.stream === STANDALONE
      )
        continue;
      if (formatTarget(event.body.stream) !== label || claims().judge(event) !== 'accepted') continue;
      const isAnswer = event.body.answers === null ? event.body.end : event.body.answers === answers;
      if (event.body.answers !== null && !isAnswer) continue;
      yield { json: decodeText(record.value ?? new Uint8Array(0)), answer: isAnswer };
      if (isAnswer) return;
    }
    if (batch.next === position) return;
    position = batch.next;
  }
}
