/** `throughline inspect <event id | session id>`. */
import { deadline, LogError } from '@throughline/log';
import type { Log } from '@throughline/log';
import { formatStreamLabel, readEventRecord } from '@throughline/protocol';
import type { EventId, LogRecord, Partition } from '@throughline/protocol';
import { SessionDirectory, TailSet } from '@throughline/tail';
import type { Meta, PartitionTail } from '@throughline/tail';
import type { Settings } from '../settings.ts';
import { describeSession, renderSession } from './inspect-session.ts';
import { judgeResume } from './judge-resume.ts';
import type { ResumeJudgement } from './judge-resume.ts';
import { withLog, withMeta } from './open-operator-log.ts';
import type { OperatorProcess } from './operator-process.ts';
import type { Inspected } from './operations.ts';
import { readOne } from './partition-facts.ts';
import { kcatCommand, renderRecord, showRecord, topicText } from './show-record.ts';
import { renderJson } from './table.ts';

/** Reading from the newest checkpoint on takes a moment, all of a day's events a while. */
const READ_MS = 60_000;
const CACHE_BYTES = 16 * 1024 * 1024;

/** 0: said what there is to say, whatever that is. */
export async function runInspect(inspected: Inspected, settings: Settings, self: OperatorProcess): Promise<number> {
  return await withLog(settings, self, (log) =>
    withMeta(log, self, async (meta) => {
      const { partition } = inspected.decoded.id;
      const isThere = partition < log.description.partitions;
      const directory = new SessionDirectory({
        log,
        clock: self.clock,
        partitions: isThere ? [partition] : [],
        maxLifeMs: settings.worker.maxLifeMs,
        keepRecords: true,
      });
      const limit = deadline(self.clock, READ_MS, self.signal);
      try {
        await directory.sync(limit.signal);
        const source = { log, meta, directory, settings, self, signal: limit.signal };
        if (inspected.decoded.kind === 'event') await inspectEvent(source, inspected, inspected.decoded.id);
        else {
          const described = await describeSession(source, inspected.text, inspected.decoded.id);
          self.out(inspected.json ? renderJson(described) : renderSession(described, self.clock.wallMs()));
        }
        return 0;
      } finally {
        limit.dispose();
        await directory.close();
      }
    }),
  );
}

export interface InspectSource {
  readonly log: Log;
  readonly meta: Meta;
  /** Knows all of the partition. */
  readonly directory: SessionDirectory;
  readonly settings: Settings;
  readonly self: OperatorProcess;
  readonly signal: AbortSignal;
}

async function inspectEvent(source: InspectSource, inspected: Inspected, cursor: EventId): Promise<void> {
  const { log, meta, settings, self, signal } = source;
  const { partition, offset } = cursor;
  const of = { topic: 'events', partition } as const;
  const isThere = partition < log.description.partitions;
  const held = isThere ? await log.bounds(of) : null;
  const isHeld = held !== null && offset >= held.start && offset < held.end;
  const anchor = isHeld ? await readOne(log, of, offset, signal) : null;
  const epoch = meta.epoch();
  const tails =
    epoch === null
      ? null
      : new TailSet({ log, clock: self.clock, meta, epoch, cacheBytes: CACHE_BYTES, catchUpReaders: 1 });
  let tail: PartitionTail | null = null;
  let resume: ResumeJudgement;
  try {
    tail = tails === null || !isThere ? null : await tails.get(partition, signal);
    if (tails !== null && isThere && tail === null)
      throw new LogError(
        'LOG_UNAVAILABLE',
        `partition ${partition} was not read to its end within ${READ_MS / 1000} s`,
      );
    const judged = { text: inspected.text, cursor, session: inspected.session, anchor };
    resume = await judgeResume({ ...source, tail }, judged);
  } finally {
    await tails?.stop();
  }
  const described = {
    kind: 'event',
    id: describeCursor(cursor),
    epoch: { inForce: epoch, isCursors: epoch === cursor.epoch },
    record: anchor === null ? null : showRecord(anchor, topicText(settings.log, 'events'), partition, true),
    held,
    acceptance: anchor === null || tail === null ? null : acceptanceOf(anchor, tail),
    resume,
    isSessionChecked: inspected.session !== null,
    kcat: kcatCommand(settings.log, { topic: 'events', partition, offset }),
  };
  self.out(inspected.json ? renderJson(described) : renderEvent(described));
}

function describeCursor({ epoch, partition, offset, stream, requestId, seq, tag, crc, chain }: EventId) {
  return {
    epoch,
    partition,
    offset,
    stream: formatStreamLabel(stream),
    requestId: requestId ?? null,
    seq,
    tag: Buffer.from(tag).toString('hex'),
    crc: crc.toString(16).padStart(8, '0'),
    chain: Buffer.from(chain).toString('hex'),
  };
}

function acceptanceOf(record: LogRecord, tail: PartitionTail): string {
  const event = readEventRecord(record);
  return 'unreadable' in event ? `unreadable: ${event.unreadable}` : tail.claims().judge(event);
}

interface DescribedEvent {
  readonly id: ReturnType<typeof describeCursor>;
  readonly epoch: { readonly inForce: string | null; readonly isCursors: boolean };
  readonly record: ReturnType<typeof showRecord> | null;
  readonly held: { readonly start: number; readonly end: number } | null;
  readonly acceptance: string | null;
  readonly resume: ResumeJudgement;
  readonly isSessionChecked: boolean;
  readonly kcat: string | null;
}

function renderEvent({ id, epoch, record, held, acceptance, resume, isSessionChecked, kcat }: DescribedEvent): string {
  const request = id.requestId === null ? '' : `, answers the request ${JSON.stringify(id.requestId)}`;
  const message = id.seq === 'end' ? 'ended by the gateway itself' : `message ${id.seq} of its stream`;
  const lines = [
    `event id   stream ${id.stream}${request}; ${message}`,
    `epoch      ${id.epoch}${epoch.isCursors ? ', in force' : epoch.inForce === null ? '; the log has none yet' : `; in force is ${epoch.inForce}`}`,
    ...(record === null ? [missingRecord(id.partition, id.offset, held)] : [renderRecord(record).trimEnd()]),
    ...(acceptance === null ? [] : [`counts     ${acceptance}`]),
    `resume     ${resumeText(resume)}`,
    ...(isSessionChecked ? [] : ['           (the session was not checked; name it with --session)']),
    ...(kcat === null ? [] : [`kcat       ${kcat}`]),
  ];
  return `${lines.join('\n')}\n`;
}

function missingRecord(partition: Partition, offset: number, held: DescribedEvent['held']): string {
  if (held === null) return `record     none: the log has no partition ${partition}`;
  return `record     none at partition ${partition}, offset ${offset}; held are ${held.start} to ${held.end - 1}`;
}

export function resumeText(resume: ResumeJudgement): string {
  switch (resume.outcome) {
    case 'resumes': {
      const count = resume.replays === null ? 'what follows' : `${resume.replays} messages, then ${resume.then}`;
      return `yes: 200, ${count}`;
    }
    case 'finished':
      return 'nothing is left on this stream: 204';
    case 'refused': {
      const how = resume.answer === 'in-band' ? '200 with a JSON-RPC error in the stream' : String(resume.answer);
      return `no: ${resume.reason} (${how}${resume.endsSession ? '; it would end the session' : ''})`;
    }
    case 'unknown':
      return `not known: ${resume.why}`;
  }
}
