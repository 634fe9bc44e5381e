/** What `throughline doctor` looks at. Each fact is asked for by itself, with a deadline: what fails is unknown, and the rest is still told. */
import { statSync } from 'node:fs';
import path from 'node:path';
import { DEAD_LETTER, deadline, errorText, hasLogCode } from '@throughline/log';
import type { Log, LogDescription } from '@throughline/log';
import { describeKafka, diffTopics } from '@throughline/log/kafka';
import type { Asked, KafkaFacts, TopicChange } from '@throughline/log/kafka';
import type { Offset, Partition } from '@throughline/protocol';
import { kafkaClient, openLog } from '../open-log.ts';
import type { Settings } from '../settings.ts';
import { findSecrets } from './known-secrets.ts';
import type { KnownSecrets } from './known-secrets.ts';
import type { OperatorProcess } from './operator-process.ts';
import { readOwnership } from './owners.ts';
import type { Ownership } from './owners.ts';
import { readOne } from './partition-facts.ts';
import { planOptions } from './topics.ts';

export interface PartitionSpan {
  readonly partition: Partition;
  readonly start: Offset;
  readonly end: Offset;
  /** Time of the oldest event; null: none is held. */
  readonly oldestMs: number | null;
}

export interface DoctorFacts {
  readonly nowMs: number;
  /** Null on a log file. */
  readonly kafka: KafkaFacts | null;
  readonly differences: Asked<readonly TopicChange[]> | null;
  /** Null on Kafka. */
  readonly file: { readonly bytes: number; readonly maxBytes: number } | null;
  readonly opened: Asked<LogDescription>;
  readonly secrets: Asked<KnownSecrets>;
  readonly ownership: Asked<Ownership>;
  readonly spans: Asked<readonly PartitionSpan[]>;
  readonly deadLetters: Asked<{ readonly count: number; readonly newestMs: number | null }>;
}

const CHECK_MS = 30_000;

export async function gatherFacts(settings: Settings, self: OperatorProcess): Promise<DoctorFacts> {
  const { location, kafka } = settings.log;
  const file = location.kind === 'sqlite' ? { file: location.file, bytes: fileBytes(location.file) } : null;
  const base = { nowMs: self.clock.wallMs(), file: file && { bytes: file.bytes, maxBytes: settings.log.maxBytes } };
  let facts: { kafka: KafkaFacts | null; differences: DoctorFacts['differences'] } = { kafka: null, differences: null };
  if (location.kind === 'kafka') {
    const client = kafkaClient(settings.log, location.brokers, { role: 'operator', logger: self.logger });
    const described = await describeKafka(client, kafka.prefix);
    if (!described.cluster.known) return { ...base, ...NOTHING, kafka: described };
    const differences = await ask(self, () => diffTopics(client, planOptions(kafka.prefix, settings.log.topics)));
    facts = { kafka: described, differences };
  } else if (file?.bytes === 0) return { ...base, ...NOTHING, opened: noFile(file.file) };
  const opening = await ask(self, () => openLog(settings.log, { role: 'operator', logger: self.logger }));
  if (!opening.known) return { ...base, ...NOTHING, ...facts, opened: opening };
  const log = opening.value;
  try {
    const [secrets, ownership, spans, deadLetters] = await Promise.all([
      ask(self, () => findSecrets(settings, log)),
      ask(self, () => readOwnership(log, settings, self)),
      ask(self, (signal) => findSpans(log, signal)),
      ask(self, (signal) => countDeadLetters(log, signal)),
    ]);
    const opened = { known: true, value: log.description } as const;
    return { ...base, ...facts, opened, secrets, ownership, spans, deadLetters };
  } finally {
    await log.close();
  }
}

const UNASKED = { known: false, denied: false, message: 'the log could not be opened' } as const;
const NOTHING = {
  kafka: null,
  differences: null,
  opened: UNASKED,
  secrets: UNASKED,
  ownership: UNASKED,
  spans: UNASKED,
  deadLetters: UNASKED,
} as const;

function noFile(file: string): Asked<never> {
  return { known: false, denied: false, message: `there is no log at ${path.resolve(file)}` };
}

/** With what SQLite keeps beside it; 0: there is none. */
function fileBytes(file: string): number {
  return ['', '-wal'].reduce(
    (sum, suffix) => sum + (statSync(path.resolve(file) + suffix, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}

async function findSpans(log: Log, signal: AbortSignal): Promise<PartitionSpan[]> {
  const partitions = Array.from({ length: log.description.partitions }, (_, partition) => partition);
  return await Promise.all(
    partitions.map(async (partition) => {
      const of = { topic: 'events', partition } as const;
      const { start, end } = await log.bounds(of);
      const oldest = start < end ? await readFirst(log, of, start, signal) : null;
      return { partition, start, end, oldestMs: oldest };
    }),
  );
}

async function countDeadLetters(log: Log, signal: AbortSignal): Promise<{ count: number; newestMs: number | null }> {
  const { start, end } = await log.bounds(DEAD_LETTER);
  const newest = start < end ? await readOne(log, DEAD_LETTER, end - 1, signal) : null;
  return { count: end - start, newestMs: newest?.timestampMs ?? null };
}

/** Time of the first record at or above `from`. */
async function readFirst(
  log: Log,
  of: { readonly topic: 'events'; readonly partition: Partition },
  from: Offset,
  signal: AbortSignal,
): Promise<number | null> {
  const { records } = await log.read(of, from, { maxBytes: 1, signal });
  return records[0]?.timestampMs ?? null;
}

/** Never rejects, and ends by its deadline whatever `what` does. */
async function ask<T>(self: OperatorProcess, what: (signal: AbortSignal) => Promise<T>): Promise<Asked<T>> {
  const limit = deadline(self.clock, CHECK_MS, self.signal);
  const late = new Promise<never>((_, reject) => {
    limit.signal.addEventListener('abort', () => {
      reject(new Error(`not known within ${CHECK_MS / 1000} s`));
    });
  });
  try {
    return { known: true, value: await Promise.race([what(limit.signal), late]) };
  } catch (error) {
    const message = errorText(error);
    return { known: false, denied: hasLogCode(error, 'NOT_AUTHORIZED'), message };
  } finally {
    limit.dispose();
  }
}
