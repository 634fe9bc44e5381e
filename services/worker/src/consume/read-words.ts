/**
 * Reads what former owners' servers said on the streams of some calls: one reading of `events` for all of them.
 * SPEC: WRK-MEMORY, WRK-MEMORY-BOUND.
 */
import type { ClaimHistory } from '@throughline/history';
import { readRange } from '@throughline/log';
import type { Log } from '@throughline/log';
import { classifyText, decodeText, formatTarget, readEventRecord, STANDALONE } from '@throughline/protocol';
import type { JsonRpcId, JsonRpcMessage, Offset, Partition } from '@throughline/protocol';
import { MAX_MESSAGES } from './call-memory.ts';
import type { OpenCall } from './open-call.ts';

/** Characters of what all calls of one takeover had said. */
const MAX_TOTAL_CHARS = 64 * 1024 * 1024;

/** What one call said. */
export interface Words {
  readonly said: JsonRpcMessage[];
  /** Ids of its requests to the client, those of `said` and others. */
  readonly asked: Set<JsonRpcId>;
  /** Why it cannot be said what all it said. */
  fault: 'evicted' | 'too-many' | 'unreadable' | null;
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
  const words = new Map<OpenCall, Words>();
  const byStream = new Map<string, OpenCall>();
  let from = below;
  let total = 0;
  for (const call of calls) {
    words.set(call, { said: [], asked: new Set(), fault: null });
    byStream.set(nameOf(call.key, formatTarget(call.stream)), call);
    from = Math.min(from, call.after ?? 0);
  }
  const onEvicted = (start: Offset): void => {
    for (const [{ after }, each] of words) if ((after ?? 0) < start) each.fault = 'evicted';
  };
  for await (const record of readRange({ log, of: { topic: 'events', partition }, from, below, signal, onEvicted })) {
    const event = readEventRecord(record);
    if ('unreadable' in event || event.body.type !== 'message' || event.body.stream === STANDALONE) continue;
    const call = byStream.get(nameOf(event.key, formatTarget(event.body.stream)));
    const said = call === undefined ? undefined : words.get(call);
    if (call === undefined || said === undefined || claims().judge(event) !== 'accepted') continue;
    const json = decodeText(record.value ?? new Uint8Array(0));
    total += json.length;
    if (total > MAX_TOTAL_CHARS) said.fault ??= 'too-many';
    hear(call, said, json);
  }
  return words;
}

function hear(call: OpenCall, words: Words, json: string): void {
  const classified = classifyText(json);
  if ('fault' in classified) {
    words.fault = 'unreadable';
    return;
  }
  if (classified.kind === 'request' && words.asked.size < MAX_MESSAGES) words.asked.add(classified.message.id);
  if (call.memory?.fits(json.length) === true && words.fault === null) words.said.push(classified.message);
}

function nameOf(key: string, label: string): string {
  return `${key}\n${label}`;
}
