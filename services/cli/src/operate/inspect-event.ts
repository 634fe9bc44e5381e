/** What an event id names: its record, if it lies where the id says, and what a resume with the id would be answered now. */
import { LogError } from '@throughline/log';
import { decideAnchor } from '@throughline/history';
import { formatStreamLabel, readEventRecord } from '@throughline/protocol';
import type { EventId, LogRecord, Partition } from '@throughline/protocol';
import { TailSet } from '@throughline/tail';
import type { Meta, PartitionTail } from '@throughline/tail';
import type { InspectSource } from './inspect-source.ts';
import { judgeResume } from './judge-resume.ts';
import type { ResumeJudgement } from './judge-resume.ts';
import type { Inspected } from './operations.ts';
import { readOne } from './partition-facts.ts';
import { kcatCommand, renderRecord, showRecord, topicText } from './show-record.ts';
import type { ShownRecord } from './show-record.ts';

const CACHE_BYTES = 16 * 1024 * 1024;

export interface DescribedEvent {
  readonly kind: 'event';
  readonly id: ReturnType<typeof describeCursor>;
  readonly epoch: {
    readonly inForce: string | null;
    readonly isCursors: boolean;
    /** `former`: it was in force on this log, and ended. `unknown`: it never was. */
    readonly state: 'in-force' | 'former' | 'unknown';
  };
  /** The event itself. Null: it is not held, or the gateway said it without a record. */
  readonly record: ShownRecord | null;
  /** What lies at its place and is not the event that the id was made for; never with its value. */
  readonly otherRecord: ShownRecord | null;
  readonly held: { readonly start: number; readonly end: number } | null;
  /** Whether the event counts; null: there is none, or nothing to judge it by. */
  readonly acceptance: string | null;
  readonly resume: ResumeJudgement;
  readonly isSessionChecked: boolean;
  /** Prints what lies at its place, value included. */
  readonly kcat: string | null;
}

/** Errors: those of `Log.read`; `LOG_UNAVAILABLE` when the partition was not read to its end in time. */
export async function describeEvent(
  source: InspectSource,
  inspected: Inspected,
  cursor: EventId,
): Promise<DescribedEvent> {
  const { log, meta, settings, self, signal } = source;
  const { partition, offset } = cursor;
  const of = { topic: 'events', partition } as const;
  const isThere = partition < log.description.partitions;
  const held = isThere ? await log.bounds(of) : null;
  const isHeld = held !== null && offset >= held.start && offset < held.end;
  const found = isHeld ? await readOne(log, of, offset, signal) : null;
  const isItself = found !== null && isRecordOf(cursor, found);
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
      throw new LogError('LOG_UNAVAILABLE', `partition ${partition} was not read to its end in time`);
    const judged = { text: inspected.text, cursor, session: inspected.session, anchor: found };
    resume = await judgeResume({ ...source, tail }, judged);
  } finally {
    await tails?.stop();
  }
  const show = (record: LogRecord, withValue: boolean): ShownRecord =>
    showRecord(record, topicText(settings.log, 'events'), partition, withValue);
  return {
    kind: 'event',
    id: describeCursor(cursor),
    epoch: { inForce: epoch, isCursors: epoch === cursor.epoch, state: stateOfEpoch(cursor, meta) },
    record: isItself ? show(found, inspected.payload) : null,
    // The gateway's own end of a stream has no record; what lies at its place is where the stream stood.
    otherRecord: found === null || isItself || cursor.seq === 'end' ? null : show(found, false),
    held,
    acceptance: isItself && tail !== null ? acceptanceOf(found, cursor, tail, meta) : null,
    resume,
    isSessionChecked: inspected.session !== null,
    kcat: kcatCommand(settings.log, { topic: 'events', partition, offset }),
  };
}

/** By the checksum in the id, as a gateway decides. */
function isRecordOf(cursor: EventId, record: LogRecord): boolean {
  return cursor.seq !== 'end' && decideAnchor(cursor, { found: 'record', record }).do === 'resume';
}

function stateOfEpoch({ epoch }: EventId, meta: Meta): DescribedEvent['epoch']['state'] {
  if (epoch === meta.epoch()) return 'in-force';
  return meta.isFormer(epoch) ? 'former' : 'unknown';
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

/** Claims are those of the epoch in force: they say nothing of what an earlier one accepted. */
function acceptanceOf(record: LogRecord, cursor: EventId, tail: PartitionTail, meta: Meta): string {
  const state = stateOfEpoch(cursor, meta);
  if (state !== 'in-force') return state === 'former' ? 'former-epoch' : 'unknown-epoch';
  const event = readEventRecord(record);
  return 'unreadable' in event ? `unreadable: ${event.unreadable}` : tail.claims().judge(event);
}

export function renderEvent(event: DescribedEvent): string {
  const { id, epoch, acceptance, resume, isSessionChecked, kcat } = event;
  const request = id.requestId === null ? '' : `, answers the request ${JSON.stringify(id.requestId)}`;
  const message = id.seq === 'end' ? 'ended by the gateway itself' : `message ${id.seq} of its stream`;
  const isOnlyOther = event.record === null && event.otherRecord !== null;
  const lines = [
    `event id   stream ${id.stream}${request}; ${message}`,
    `epoch      ${epochText(id.epoch, epoch)}`,
    ...recordLines(event),
    ...(acceptance === null ? [] : [`counts     ${acceptanceText(acceptance, id.epoch)}`]),
    `resume     ${resumeText(resume)}`,
    ...(isSessionChecked ? [] : ['           (the session was not checked; name it with --session)']),
    ...(kcat === null ? [] : [`kcat       ${kcat}${isOnlyOther ? '   # shows the other record' : ''}`]),
  ];
  return `${lines.join('\n')}\n`;
}

function epochText(token: string, { inForce, state }: DescribedEvent['epoch']): string {
  if (state === 'in-force') return `${token}, in force`;
  const whose = state === 'former' ? 'a former epoch of this log' : 'which this log does not know';
  return `${token}, ${whose}; ${inForce === null ? 'the log has none yet' : `in force is ${inForce}`}`;
}

function recordLines({ id, record, otherRecord, held, resume }: DescribedEvent): string[] {
  if (record !== null)
    return [
      ...(resume.outcome === 'refused' && resume.reason === 'cursor-foreign'
        ? ['record     of another session or stream than that of --session:']
        : []),
      renderRecord(record).trimEnd(),
    ];
  if (otherRecord !== null)
    return [
      'record     not this event: another record lies at its place, the checksum in the id is not its own:',
      renderRecord(otherRecord).trimEnd(),
    ];
  return [missingRecord(id.partition, id.offset, id.seq === 'end', held)];
}

function missingRecord(partition: Partition, offset: number, isEnd: boolean, held: DescribedEvent['held']): string {
  if (isEnd) return `record     none: the gateway ended the stream itself, at partition ${partition}, offset ${offset}`;
  if (held === null) return `record     none: the log has no partition ${partition}`;
  return `record     none at partition ${partition}, offset ${offset}; held are ${held.start} to ${held.end - 1}`;
}

function acceptanceText(acceptance: string, epoch: string): string {
  if (acceptance === 'former-epoch') return `no more: it belongs to the former epoch ${epoch}, which has ended`;
  if (acceptance === 'unknown-epoch') return `no: it belongs to the epoch ${epoch}, which this log does not know`;
  return acceptance;
}

function resumeText(resume: ResumeJudgement): string {
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
