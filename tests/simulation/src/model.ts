/**
 * What the log says, derived from the design alone and in the plainest way: no incremental folds, no caches, no starting
 * in the middle. It shares the reading of headers with the product, and nothing else.
 */
import { createHash } from 'node:crypto';
import { readEventRecord, readInboundRecord, STANDALONE, decodeText } from '@throughline/protocol';
import type { EventRecord, InboundRecord, LogRecord } from '@throughline/protocol';
import type { PartitionArchive } from './records-of-run.ts';

export interface ModelMessage {
  readonly seq: number;
  readonly offset: number;
  readonly data: string;
  /** First 8 bytes of the chain, in hex. */
  readonly chain: string;
  readonly end: boolean;
}

export interface ModelStream {
  readonly label: string;
  readonly messages: readonly ModelMessage[];
  /** Whether it ended: by its last message, or by an end without one. */
  readonly ended: boolean;
  /** Accepted messages behind its end. */
  readonly afterEnd: number;
}

export interface ModelSession {
  readonly key: string;
  readonly accepted: readonly EventRecord[];
  /** Offset of its end in `events`; `null` if it has none there. */
  readonly endedAt: number | null;
}

export interface ModelPartition {
  readonly partition: number;
  readonly sessions: ReadonlyMap<string, ModelSession>;
  readonly requests: readonly InboundRecord[];
  readonly endedKeys: ReadonlySet<string>;
  readonly claims: readonly number[];
  /** How often an owner released it. */
  readonly releases: number;
}

/** @param epoch the epoch whose history is asked for. */
export function readPartition(archive: PartitionArchive, epoch: string): ModelPartition {
  let inForce: number | null = null;
  const claims: number[] = [];
  const accepted = new Map<string, EventRecord[]>();
  let releases = 0;
  for (const record of archive.events) {
    const event = readEventRecord(record);
    if ('unreadable' in event) continue;
    const { body } = event;
    if (body.type === 'claimed') {
      const follows = body.predecessor === inForce || (inForce !== null && isPassed(archive, claims, inForce, event));
      if (body.epoch === epoch && follows) {
        inForce = event.offset;
        claims.push(inForce);
      }
      continue;
    }
    if (event.owner !== null && event.owner !== inForce) continue;
    if (body.type === 'released') releases++;
    if (event.key === '') continue;
    const list = accepted.get(event.key) ?? [];
    accepted.set(event.key, list);
    list.push(event);
  }
  const sessions = new Map<string, ModelSession>();
  for (const [key, events] of accepted) {
    const end = events.find(({ body }) => body.type === 'sessionEnded');
    sessions.set(key, { key, accepted: events, endedAt: end?.offset ?? null });
  }
  const requests = archive.inbound.flatMap((record) => {
    const read = readInboundRecord(record);
    return 'unreadable' in read || !isRequest(record) ? [] : [read];
  });
  const endedKeys = new Set(
    archive.sessions
      .map(({ key }) => (key === null ? '' : decodeText(key)))
      .filter((key) => key.endsWith('/end'))
      .map((key) => key.slice(0, -'/end'.length)),
  );
  return { partition: archive.partition, sessions, requests, endedKeys, claims, releases };
}

/** The claim in force was evicted before `meta` told of it, and `event` claims from before it: TAIL-CLAIM-EVICTED. */
function isPassed(
  { evictions = [], toldMs }: PartitionArchive,
  claims: readonly number[],
  inForce: number,
  { body, offset, record }: EventRecord,
): boolean {
  if (body.type !== 'claimed' || toldMs === undefined) return false;
  const isEvicted = evictions.some(({ below, end }) => inForce < below && end <= offset);
  const isTold = (toldMs.get(inForce) ?? Number.POSITIVE_INFINITY) <= record.timestampMs;
  const { predecessor } = body;
  return isEvicted && !isTold && (predecessor === null || (predecessor < inForce && claims.includes(predecessor)));
}

function isRequest(record: LogRecord): boolean {
  if (record.value === null) return false;
  const message = JSON.parse(decodeText(record.value)) as Record<string, unknown>;
  return 'method' in message && 'id' in message;
}

/** A request stream, or a standalone one (which begins at the session's start or at its own attachment). */
export function readStream(sessionId: string, session: ModelSession, label: string, fromStart: boolean): ModelStream {
  const at = Number(label.slice(1));
  const isStandalone = label.startsWith('s');
  let chain = sha256(Buffer.from(`${sessionId}\n${label}\nchain`));
  const messages: ModelMessage[] = [];
  let ended = false;
  let afterEnd = 0;
  for (const event of session.accepted) {
    const { body } = event;
    if (isStandalone) {
      if (body.type === 'attached' && body.stream === STANDALONE && event.offset > at) ended = true;
      if (ended) break;
      if (!fromStart && event.offset < at) continue;
    }
    if (body.type === 'ended' && labelOf(body.stream) === label) {
      ended = true;
      continue;
    }
    if (body.type !== 'message' || labelOf(body.stream) !== (isStandalone ? STANDALONE : label)) continue;
    if (ended) {
      afterEnd++;
      continue;
    }
    const data = decodeText(event.record.value ?? new Uint8Array(0)).replace(/\r\n?/g, '\n');
    chain = sha256(Buffer.concat([chain, Buffer.from(data)]));
    messages.push({
      seq: messages.length + 1,
      offset: event.offset,
      data,
      chain: chain.toString('hex'),
      end: body.end,
    });
    if (body.end && !isStandalone) ended = true;
  }
  return { label, messages, ended, afterEnd };
}

/** Whether a standalone stream opened at `at` begins at the session's start, as design section 9 says. */
export function beginsAtStart(session: ModelSession, at: number): boolean {
  const before = session.accepted.filter(({ offset }) => offset < at);
  const attachments = before.filter(({ body }) => body.type === 'attached' && body.stream === STANDALONE);
  const newest = attachments.at(-1);
  if (newest === undefined) return true;
  return !before.some(
    ({ offset, body }) => body.type === 'message' && body.stream === STANDALONE && offset < newest.offset,
  );
}

function labelOf(stream: { readonly kind: string; readonly at: number } | string): string {
  return typeof stream === 'string' ? stream : `${stream.kind === 'request' ? 'r' : 's'}${stream.at}`;
}

function sha256(data: Uint8Array): Buffer {
  return createHash('sha256').update(data).digest().subarray(0, 8);
}
