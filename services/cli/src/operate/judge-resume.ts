/**
 * Whether a resume with a cursor would be taken now, and what it would bring: by the decisions and folds that gateways
 * use. Nothing is appended, so no stream is taken from anybody.
 */
import {
  answerRefusal,
  decideAnchor,
  decideOpening,
  decideOwnCursor,
  follow,
  startFollowing,
} from '@throughline/history';
import type { Log } from '@throughline/log';
import { readEventRecord } from '@throughline/protocol';
import type { EventId, LogRecord, Offset, ResumptionReason, SessionId } from '@throughline/protocol';
import { endsStream } from '@throughline/tail';
import type { Meta, PartitionTail, SessionDirectory } from '@throughline/tail';

export type ResumeJudgement =
  | {
      readonly outcome: 'resumes';
      /** Messages that would be sent again; null: the session is not known, so they cannot be told from others. */
      readonly replays: number | null;
      /** What comes behind them. */
      readonly then: 'live' | 'end of stream' | 'session ended' | 'unknown';
    }
  /** 204: nothing of the stream can follow. */
  | { readonly outcome: 'finished' }
  | {
      readonly outcome: 'refused';
      readonly reason: ResumptionReason;
      readonly answer: 'in-band' | 400 | 404;
      readonly endsSession: boolean;
    }
  | { readonly outcome: 'unknown'; readonly why: string };

export interface JudgeSource {
  readonly log: Log;
  readonly meta: Meta;
  readonly directory: SessionDirectory;
  /** Caught up. Null: the cursor's partition does not exist. */
  readonly tail: PartitionTail | null;
  readonly signal: AbortSignal;
}

export interface JudgedCursor {
  readonly text: string;
  readonly cursor: EventId;
  /** Null: not told; the cursor is taken for its own session's. */
  readonly session: { readonly text: string; readonly id: SessionId } | null;
  /** The record at the cursor's place, if there is one. */
  readonly anchor: LogRecord | null;
}

/** Errors: those of `Log.read`. */
export async function judgeResume(
  source: JudgeSource,
  { text, cursor, session, anchor }: JudgedCursor,
): Promise<ResumeJudgement> {
  const { meta, directory, tail, signal } = source;
  const currentEpoch = meta.epoch();
  if (currentEpoch === null) return { outcome: 'unknown', why: 'there is no epoch yet' };
  const key = session?.id.key ?? sessionOf(cursor, anchor);
  const sessionEnded = key !== null && directory.hasEnded(cursor.partition, key);
  const opening =
    session === null
      ? decideOwnCursor(cursor, { isFormer: false, currentEpoch, sessionEnded })
      : decideOpening({ lastEventId: text, sessionId: session.text, session: session.id, currentEpoch, sessionEnded });
  if (opening.do === 'finished') return { outcome: 'finished' };
  const refused = (reason: ResumptionReason): ResumeJudgement => ({
    outcome: 'refused',
    reason,
    ...answerRefusal(reason, cursor.stream.kind),
  });
  if (opening.do === 'refuse') return refused(opening.reason);
  if (tail === null) return { outcome: 'unknown', why: `the log has no partition ${cursor.partition}` };
  const reader = tail.cursor(key ?? '', cursor.offset);
  const read = await reader.readAnchor(signal);
  if (read.kind === 'stopped') return { outcome: 'unknown', why: 'the log was not read in time' };
  // An attachment appended now would be acknowledged at the end, at least.
  const attachedAt: Offset = tail.position();
  const decision = decideAnchor(
    cursor,
    read.kind === 'record'
      ? { found: 'record', record: read.record }
      : read.kind === 'gap'
        ? { found: 'evicted' }
        : { found: 'nothing-yet', attachedAt },
  );
  if (decision.do === 'refuse') return refused(decision.reason);
  if (decision.do === 'wait' || read.kind !== 'record')
    return { outcome: 'unknown', why: 'no record is held at this place, and none after it' };
  if (key === null) return { outcome: 'resumes', replays: null, then: 'unknown' };
  return await walk(source, tail, cursor, key, read.record);
}

/** The session that the anchor belongs to, if it is a message of the cursor's own stream. */
function sessionOf(cursor: EventId, anchor: LogRecord | null): string | null {
  const event = anchor === null ? null : readEventRecord(anchor);
  if (event === null || 'unreadable' in event || event.key === '') return null;
  const [, step] = follow(startFollowing(cursor.stream, null), event);
  return step.do === 'deliver' ? event.key : null;
}

/** What a connection that resumes behind the anchor would be sent, up to now. */
async function walk(
  { signal }: JudgeSource,
  tail: PartitionTail,
  cursor: EventId,
  key: string,
  anchor: LogRecord,
): Promise<ResumeJudgement> {
  // Whatever is attached now loses the stream to whoever resumes: nothing in the log supersedes a new attachment.
  let state = startFollowing(cursor.stream, '');
  if (endsStream(tail, key, state, anchor)) return { outcome: 'finished' };
  const reader = tail.cursor(key, cursor.offset + 1);
  let replays = 0;
  for (;;) {
    const result = await reader.next(signal, 0);
    if (result.kind === 'stopped') return { outcome: 'unknown', why: 'the log was not read in time' };
    if (result.kind === 'gap')
      return { outcome: 'refused', reason: 'gap', ...answerRefusal('gap', cursor.stream.kind) };
    if (result.kind === 'idle') return { outcome: 'resumes', replays, then: 'live' };
    for (const { event: next } of result.events) {
      const [after, step] = follow(state, next);
      state = after;
      if (step.do === 'deliver') replays++;
      if (step.do === 'session-ended') return { outcome: 'resumes', replays, then: 'session ended' };
      if (step.do === 'finish' && replays === 0) return { outcome: 'finished' };
      if (step.do === 'finish' || (step.do === 'deliver' && step.end))
        return { outcome: 'resumes', replays, then: 'end of stream' };
    }
  }
}
