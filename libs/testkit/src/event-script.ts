/** Records of `events` as owners, gateways and foreign producers write them, for tests that build a history by hand. */
import {
  EVENT_TYPE,
  formatCheckpoint,
  formatTarget,
  makeRecord,
  NO_PREDECESSOR,
  readEventRecord,
} from '@throughline/protocol';
import type {
  Checkpoint,
  EventRecord,
  LogRecord,
  Offset,
  RecordInput,
  StreamLabel,
  StreamTarget,
} from '@throughline/protocol';

const ownerText = (owner: Offset | null | undefined): string | null => {
  return owner === null || owner === undefined ? null : String(owner);
};

export function claimed(worker: string, epoch: string, predecessor: Offset | null): RecordInput {
  return makeRecord(EVENT_TYPE.claimed, null, '{}', {
    predecessor: predecessor === null ? NO_PREDECESSOR : String(predecessor),
    worker,
    epoch,
  });
}

export function checkpointed(owner: Offset, checkpoint: Partial<Checkpoint> = {}): RecordInput {
  const value = formatCheckpoint({ claims: [owner], inbound: 0, from: 0, open: [], ...checkpoint });
  return makeRecord(EVENT_TYPE.checkpoint, null, value, { owner: String(owner) });
}

export function released(owner: Offset): RecordInput {
  return makeRecord(EVENT_TYPE.released, null, null, { owner: String(owner) });
}

export interface MessageOptions {
  readonly owner?: Offset | null;
  readonly end?: boolean;
  readonly answers?: Offset;
  /** A text is the header as it stands. */
  readonly among?: readonly Offset[] | string;
}

export function sent(key: string, stream: StreamTarget, payload: string, options: MessageOptions = {}): RecordInput {
  return makeRecord(EVENT_TYPE.message, key, payload, {
    stream: formatTarget(stream),
    owner: ownerText(options.owner),
    end: options.end === true ? '1' : null,
    answers: ownerText(options.answers),
    among: typeof options.among === 'string' ? options.among : (options.among?.join() ?? null),
  });
}

export function attached(key: string, stream: StreamTarget, attachment: string): RecordInput {
  return makeRecord(EVENT_TYPE.attached, key, null, { stream: formatTarget(stream), attachment });
}

export function closed(key: string, stream: StreamTarget, owner: Offset | null = null): RecordInput {
  return makeRecord(EVENT_TYPE.closed, key, null, { stream: formatTarget(stream), owner: ownerText(owner) });
}

export function streamEnded(key: string, stream: StreamLabel, owner: Offset | null = null): RecordInput {
  return makeRecord(EVENT_TYPE.ended, key, null, { stream: formatTarget(stream), owner: ownerText(owner) });
}

export function started(key: string, stream: StreamLabel, attempt: number, owner: Offset | null = null): RecordInput {
  return makeRecord(EVENT_TYPE.started, key, null, {
    stream: formatTarget(stream),
    attempt: String(attempt),
    owner: ownerText(owner),
  });
}

export function aliased(key: string, stream: StreamLabel, of: StreamLabel, owner: Offset | null = null): RecordInput {
  return makeRecord(EVENT_TYPE.alias, key, null, {
    stream: `${formatTarget(stream)}=${formatTarget(of)}`,
    owner: ownerText(owner),
  });
}

export function sessionEnded(key: string, owner: Offset | null = null): RecordInput {
  return makeRecord(EVENT_TYPE.sessionEnded, key, '{}', { owner: ownerText(owner) });
}

/** The record at `offset`, as the log would give it back. */
export function placed(input: RecordInput, offset: Offset, timestampMs = 1_767_225_600_000 + offset): LogRecord {
  return { ...input, offset, timestampMs };
}

/** The typed view of a record that is an event. */
export function eventAt(input: RecordInput, offset: Offset): EventRecord {
  const event = readEventRecord(placed(input, offset));
  if ('unreadable' in event) throw new TypeError(event.unreadable);
  return event;
}
