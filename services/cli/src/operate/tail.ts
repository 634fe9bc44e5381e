/** `throughline tail`: follows the records of a topic in lines for people, or in JSON, one record a line. */
import { hasLogCode, LogError, sleep } from '@throughline/log';
import type { Log, PartitionRef, ReadBatch } from '@throughline/log';
import { decodeText, hasOnePartition, META_KEY } from '@throughline/protocol';
import type { LogRecord, Offset, Partition, SessionId, Topic } from '@throughline/protocol';
import { StartError } from '../faults.ts';
import type { Settings } from '../settings.ts';
import { withLog } from './open-operator-log.ts';
import type { OperatorProcess } from './operator-process.ts';
import { showRecord, topicText } from './show-record.ts';
import type { ShownRecord } from './show-record.ts';

export interface TailRequest {
  readonly topic: Topic;
  /** Null: all. */
  readonly partition: Partition | null;
  /** Only its records. */
  readonly session: SessionId | null;
  readonly from: 'start' | 'end' | Offset;
  /** Records after which it ends; null: never. */
  readonly count: number | null;
  /** Ends at what is the end now. */
  readonly once: boolean;
  /** Values are shown: they are what clients and servers say. */
  readonly payload: boolean;
  readonly json: boolean;
}

const WAIT_MS = 5000;
const RETRY_MS = 500;
/** One read of one partition: with as many as there are partitions, what is held at once. */
const READ_BYTES = 256 * 1024;

/** 0 after Ctrl-C, `--count` or `--once`. */
export async function runTail(request: TailRequest, settings: Settings, self: OperatorProcess): Promise<number> {
  return await withLog(settings, self, async (log) => {
    const refs = partitionsOf(request, log);
    const ended = new AbortController();
    const signal = AbortSignal.any([self.signal, ended.signal]);
    let left = request.count ?? Infinity;
    const print = async (ref: PartitionRef, records: readonly LogRecord[]): Promise<void> => {
      for (const record of records) {
        if (left <= 0) break;
        if (!isWanted(record, request.session)) continue;
        const shown = showRecord(record, topicText(settings.log, ref.topic), ref.partition, request.payload);
        self.out(request.json ? `${JSON.stringify(hideSecret(shown))}\n` : renderLine(hideSecret(shown)));
        left--;
      }
      if (left <= 0) ended.abort();
      // A reader that is slower than the log must not have us hold what it has not read.
      await self.flushed();
    };
    await Promise.all(refs.map((ref) => follow({ log, request, self, signal, print }, ref)));
    return 0;
  });
}

interface Following {
  readonly log: Log;
  readonly request: TailRequest;
  readonly self: OperatorProcess;
  readonly signal: AbortSignal;
  print(ref: PartitionRef, records: readonly LogRecord[]): Promise<void>;
}

async function follow({ log, request, self, signal, print }: Following, ref: PartitionRef): Promise<void> {
  const { start, end } = await log.bounds(ref);
  let position = request.from === 'start' ? start : request.from === 'end' ? end : request.from;
  while (!signal.aborted && !(request.once && position >= end)) {
    let batch: ReadBatch;
    try {
      batch = await log.read(ref, position, { waitMs: request.once ? 0 : WAIT_MS, maxBytes: READ_BYTES, signal });
    } catch (error) {
      if (signal.aborted) return;
      if (hasLogCode(error, 'OFFSET_OUT_OF_RANGE')) {
        const { start: first = 0, end: next = 0 } = error.details;
        if (position > next)
          throw new LogError(
            'OFFSET_OUT_OF_RANGE',
            `${ref.topic} ${ref.partition} has no offset ${position} yet; it ends at ${next}`,
          );
        self.err(`throughline: ${ref.topic} ${ref.partition} begins at ${first}; what lay before is no longer held\n`);
        position = first;
      } else if (hasLogCode(error, 'LOG_UNAVAILABLE') && !request.once) {
        self.err(`throughline: ${error.message}; trying again\n`);
        await sleep(self.clock, RETRY_MS, signal);
      } else throw error;
      continue;
    }
    await print(ref, request.once ? batch.records.filter(({ offset }) => offset < end) : batch.records);
    if (request.once && batch.next <= position) return;
    position = batch.next;
  }
}

function partitionsOf({ topic, partition, session }: TailRequest, log: Log): PartitionRef[] {
  const isSingle = hasOnePartition(topic);
  const count = isSingle ? 1 : log.description.partitions;
  const only = partition ?? (isSingle ? null : (session?.partition ?? null));
  if (only !== null && only >= count)
    throw new StartError(
      `${topic} has ${count} ${count === 1 ? 'partition' : 'partitions'}, from 0 on: there is no ${only}.`,
    );
  return only === null
    ? Array.from({ length: count }, (_, each) => ({ topic, partition: each }))
    : [{ topic, partition: only }];
}

/** Sessions keep their end under a key of its own. */
function isWanted({ key }: LogRecord, session: SessionId | null): boolean {
  if (session === null) return true;
  const text = key === null ? '' : decodeText(key);
  return text === session.key || text.startsWith(`${session.key}/`);
}

/** A log file keeps the secret that signs session ids: it is nobody's to read in passing. */
function hideSecret(shown: ShownRecord): ShownRecord {
  const isSecret = shown.key?.startsWith(META_KEY.secret) === true;
  return isSecret && typeof shown.value === 'string' ? { ...shown, value: '<redacted>' } : shown;
}

/** `<time> <topic>/<partition>@<offset> <key> <headers> <bytes>`, then the value if it is shown. No field starts a line of its own. */
function renderLine({ topic, partition, offset, timestampMs, key, headers, value, valueBytes }: ShownRecord): string {
  const fields = [
    new Date(timestampMs).toISOString(),
    `${topic}/${partition}@${offset}`,
    key ?? '-',
    ...Object.entries(headers)
      .filter(([name]) => name !== 'v')
      .map(([name, text]) => (name === 'type' ? text : `${name}=${text}`)),
    `${valueBytes}B`,
    ...(value === undefined ? [] : [value ?? '(none)']),
  ];
  return `${fields.join(' ').replace(/[\r\n\u2028\u2029]/g, ' ')}\n`;
}
