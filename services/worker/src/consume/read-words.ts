/**
 * Reads what former owners' servers said on the streams of some calls, and what one of them may have asked elsewhere:
 * one reading of `events` for all of them. SPEC: WRK-MEMORY, WRK-MEMORY-BOUND, WRK-MEMORY-STDIO.
 */
import { withdrawnId } from '@throughline/history';
import type { ClaimHistory } from '@throughline/history';
import { readRange } from '@throughline/log';
import type { Log } from '@throughline/log';
import { classifyText, decodeText, formatTarget, readEventRecord } from '@throughline/protocol';
import type { EventRecord, JsonRpcId, JsonRpcMessage, Offset, Partition, StreamTarget } from '@throughline/protocol';
import { MAX_MESSAGES } from './call-memory.ts';
import type { OpenCall } from './open-call.ts';

/** Characters of what all calls of one takeover had said. */
const MAX_TOTAL_CHARS = 64 * 1024 * 1024;
/** Questions of one takeover that are withdrawn without it being known whose they were. */
const MAX_SHARED = 10_000;

/** A question that one of several calls asked, and nobody knows which. They share this. */
export interface SharedQuestion {
  readonly id: JsonRpcId;
  /** Where it stands. */
  readonly stream: StreamTarget;
  /** It was neither taken back nor, as far as is known, answered. */
  isOpen: boolean;
}

/** What one call said. */
export interface Words {
  readonly said: JsonRpcMessage[];
  /** Ids of its requests to the client, those of `said` and others. */
  readonly asked: Set<JsonRpcId>;
  readonly shared: SharedQuestion[];
  /** Why it cannot be said what all it said. `shared`: it may have asked what stands elsewhere. */
  fault: 'evicted' | 'too-many' | 'unreadable' | 'shared' | null;
}

export interface ReadWordsOptions {
  readonly log: Pick<Log, 'read'>;
  readonly partition: Partition;
  claims(): ClaimHistory;
  /** Former owners wrote below it. */
  readonly below: Offset;
  readonly signal: AbortSignal;
}

/** Errors: those of `Log.read`, but for what was evicted, which is told of each call. */
export async function readWords(
  { log, partition, claims, below, signal }: ReadWordsOptions,
  calls: readonly OpenCall[],
): Promise<ReadonlyMap<OpenCall, Words>> {
  const heard = new HeardWords(calls);
  const from = calls.reduce((lowest, { after }) => Math.min(lowest, after ?? 0), below);
  const onEvicted = (start: Offset): void => {
    heard.evicted(start);
  };
  for await (const record of readRange({ log, of: { topic: 'events', partition }, from, below, signal, onEvicted })) {
    const event = readEventRecord(record);
    if ('unreadable' in event || !heard.isFor(event) || claims().judge(event) !== 'accepted') continue;
    heard.hear(event);
  }
  return heard.words;
}

class HeardWords {
  readonly words = new Map<OpenCall, Words>();
  readonly #byStream = new Map<string, OpenCall>();
  readonly #shared = new Map<string, SharedQuestion>();
  readonly #keys = new Set<string>();
  #chars = 0;

  constructor(calls: readonly OpenCall[]) {
    for (const call of calls) {
      this.words.set(call, { said: [], asked: new Set(), shared: [], fault: null });
      this.#byStream.set(nameOf(call.key, formatTarget(call.stream)), call);
      this.#keys.add(call.key);
    }
  }

  evicted(start: Offset): void {
    for (const [{ after }, each] of this.words) if ((after ?? 0) < start) each.fault = 'evicted';
  }

  /** Whether it may say something of the calls. */
  isFor({ key, body }: EventRecord): boolean {
    return (
      body.type === 'message' &&
      this.#keys.has(key) &&
      // What nobody shares is known by its stream; a question that is shared may be taken back anywhere.
      (body.among.length > 0 || this.#shared.size > 0 || this.#byStream.has(nameOf(key, formatTarget(body.stream))))
    );
  }

  /** An accepted message. */
  hear({ offset, key, body, record }: EventRecord): void {
    if (body.type !== 'message') return;
    const call = this.#byStream.get(nameOf(key, formatTarget(body.stream)));
    const { among } = body;
    const mayAsk = ({ at, after }: OpenCall): boolean =>
      among === 'unknown' ? (after ?? 0) <= offset : among.includes(at);
    const candidates =
      among.length === 0 ? [] : [...this.words.keys()].filter((each) => each.key === key && mayAsk(each));
    const json = decodeText(record.value ?? new Uint8Array(0));
    const classified = classifyText(json);
    const takenBack = 'kind' in classified ? withdrawnId(classified.message) : null;
    const shared = takenBack === null ? undefined : this.#shared.get(nameOf(key, String(takenBack)));
    if (shared !== undefined) shared.isOpen = false;
    if (candidates.length > 0) this.#share(candidates, body.stream, classified);
    else if (call !== undefined) this.#say(call, json, classified);
  }

  #share(candidates: readonly OpenCall[], stream: StreamTarget, classified: ReturnType<typeof classifyText>): void {
    for (const call of candidates) this.#wordsOf(call).fault ??= 'shared';
    if ('fault' in classified || classified.kind !== 'request' || this.#shared.size >= MAX_SHARED) return;
    const { id } = classified.message;
    const question: SharedQuestion = { id, stream, isOpen: true };
    for (const call of candidates) {
      this.#wordsOf(call).shared.push(question);
      this.#shared.set(nameOf(call.key, String(id)), question);
    }
  }

  #say(call: OpenCall, json: string, classified: ReturnType<typeof classifyText>): void {
    const words = this.#wordsOf(call);
    this.#chars += json.length;
    if (this.#chars > MAX_TOTAL_CHARS) words.fault ??= 'too-many';
    if ('fault' in classified) {
      words.fault = 'unreadable';
      return;
    }
    if (classified.kind === 'request' && words.asked.size < MAX_MESSAGES) words.asked.add(classified.message.id);
    const takenBack = withdrawnId(classified.message);
    if (takenBack !== null) words.asked.delete(takenBack);
    if (call.memory?.fits(json.length) === true && words.fault === null) words.said.push(classified.message);
  }

  #wordsOf(call: OpenCall): Words {
    const words = this.words.get(call);
    if (words === undefined) throw new Error('no words of a call that was not asked for');
    return words;
  }
}

function nameOf(key: string, name: string): string {
  return `${key}\n${name}`;
}
