/**
 * The resume of one stream: the id is judged by the decision of gateways (`decideOpening`, `decideAnchor`), what follows
 * is read in the order of the log. What cannot be proved continuous is refused. SPEC: EVS-REFUSE, EVS-ISOLATED, EVS-FORK.
 */
import { decideAnchor, decideOpening } from '@throughline/history';
import type { AnchorFinding, Numbering } from '@throughline/history';
import { hasLogCode } from '@throughline/log';
import type { Log, PartitionRef } from '@throughline/log';
import { formatStreamLabel, INBOUND_TYPE, makeRecord } from '@throughline/protocol';
import type { EventId, LogRecord, Offset, ResumptionReason, SessionId } from '@throughline/protocol';
import { EventStoreError, ResumeRefused } from './errors.ts';
import type { Limits } from './limits.ts';
import { after, idOf, isSame, labelOf, readStored } from './stored-event.ts';
import type { SessionPlace, StoredEvent } from './stored-event.ts';
import { scan, WAIT_MS } from './stream-scan.ts';

export interface ReplayOptions {
  readonly log: Log;
  readonly of: PartitionRef;
  readonly limits: Limits;
  readonly place: SessionPlace;
  readonly session: SessionId;
  readonly currentEpoch: string;
  readonly sessionEnded: boolean;
}

/** An anchor that was found, read and checked. */
export interface Anchor {
  readonly cursor: EventId;
  readonly stored: StoredEvent;
  readonly at: Numbering;
}

/** The id as far as it can be judged without the log. Throws `ResumeRefused`. */
export function openCursor(options: ReplayOptions, lastEventId: string): EventId {
  const { session, place, currentEpoch, sessionEnded } = options;
  const opening = decideOpening({ lastEventId, sessionId: place.sessionId, session, currentEpoch, sessionEnded });
  if (opening.do === 'read') return opening.cursor;
  // `end` stands in ids that only gateways make.
  throw refused(options, lastEventId, opening.do === 'refuse' ? opening.reason : 'cursor-foreign');
}

/** Reads the anchor of a cursor. Throws `ResumeRefused`; errors also of `Log.read` and `Log.append`. */
export async function findAnchor(
  options: ReplayOptions,
  lastEventId: string,
  cursor: EventId,
  signal: AbortSignal,
): Promise<Anchor> {
  let attachedAt: Offset | null = null;
  for (;;) {
    const finding = await readAnchor(options, cursor, attachedAt, signal);
    const decision = decideAnchor(cursor, finding);
    if (decision.do === 'refuse') throw refused(options, lastEventId, decision.reason);
    if (decision.do === 'wait') {
      // An end may lag; only where an append is acknowledged proves that nothing is there.
      if (attachedAt === null) attachedAt = await probe(options);
      continue;
    }
    if (finding.found !== 'record') continue;
    const stored = readStored(options.place, finding.record);
    // The checksum is no secret: a forged cursor may name the record of another session, or another stream.
    if (stored === null || formatStreamLabel(labelOf(stored.sdkStream)) !== formatStreamLabel(cursor.stream))
      throw refused(options, lastEventId, 'cursor-foreign');
    const at = after(stored.follows, stored);
    if (cursor.seq === 'end' || !isSame(at, { seq: cursor.seq, chain: cursor.chain }))
      throw refused(options, lastEventId, 'diverged');
    return { cursor, stored, at };
  }
}

export interface Replayed {
  readonly at: Numbering;
  readonly position: Offset;
}

/**
 * Hands everything of the stream behind the anchor to `send`, in the order of the log, and resolves with where the stream
 * stands then.
 * @param head where this process has the stream; the replay must come by.
 * @param atLeast everything below is known to be in the log.
 */
export async function replayAfter(
  options: ReplayOptions,
  lastEventId: string,
  anchor: Anchor,
  {
    head,
    atLeast,
    signal,
  }: { readonly head: Numbering | null; readonly atLeast: Offset; readonly signal: AbortSignal },
  send: (id: string, message: unknown) => Promise<void>,
): Promise<Replayed> {
  const { log, of, limits, place } = options;
  const { cursor, stored: first } = anchor;
  let at = anchor.at;
  let hasMet = head === null || isSame(at, head);
  let events = 0;
  let chars = 0;
  const waiting: { readonly id: string; readonly text: string }[] = [];
  const position = await scan({ log, of, from: cursor.offset + 1, atLeast, signal }, (record) => {
    const stored = readStored(place, record);
    if (stored === null || stored.sdkStream !== first.sdkStream || !isSame(stored.follows, at)) return;
    at = after(at, stored);
    if (head !== null && isSame(at, head)) hasMet = true;
    if (stored.isPrimer) return;
    events++;
    chars += stored.payload.length;
    if (events > limits.maxReplayEvents || chars > limits.maxReplayChars)
      throw new EventStoreError(
        'REPLAY_TOO_LARGE',
        `more than ${limits.maxReplayEvents} events or ${limits.maxReplayChars} bytes lie behind the id`,
      );
    waiting.push({ id: idOf(place, cursor.stream, at, record), text: Buffer.from(stored.payload).toString('utf8') });
  });
  // Another process wrote another continuation: what this one says next does not follow what the client has.
  if (!hasMet) throw refused(options, lastEventId, 'diverged');
  for (const { id, text } of waiting) await send(id, JSON.parse(text));
  return { at, position };
}

async function readAnchor(
  { log, of }: ReplayOptions,
  { offset }: EventId,
  attachedAt: Offset | null,
  signal: AbortSignal,
): Promise<AnchorFinding> {
  try {
    const { records } = await log.read(of, offset, {
      maxBytes: 1,
      signal,
      ...(attachedAt === null ? {} : { waitMs: WAIT_MS }),
    });
    const record: LogRecord | undefined = records[0];
    return record === undefined ? { found: 'nothing-yet', attachedAt } : { found: 'record', record };
  } catch (error) {
    if (!hasLogCode(error, 'OFFSET_OUT_OF_RANGE')) throw error;
    return offset < (error.details.start ?? 0) ? { found: 'evicted' } : { found: 'nothing-yet', attachedAt };
  }
}

async function probe({ log, of }: ReplayOptions): Promise<Offset> {
  const { offsets } = await log.append(of, [makeRecord(INBOUND_TYPE.probe, null, null, {})]);
  return offsets[0] ?? 0;
}

function refused({ currentEpoch }: ReplayOptions, requested: string, reason: ResumptionReason): ResumeRefused {
  return new ResumeRefused({ reason, requested, available: { epoch: currentEpoch } });
}
