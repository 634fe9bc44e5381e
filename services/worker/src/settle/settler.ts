/** Writes what the server says to the streams of its calls: messages, answers, ends, copies for repeated requests. SPEC: WRK-SETTLE, WRK-BATCH-END. */
import {
  encodeText,
  errorResponse,
  EVENT_TYPE,
  formatTarget,
  makeRecord,
  STANDALONE,
  wireError,
} from '@throughline/protocol';
import type {
  JsonRpcErrorObject,
  JsonRpcId,
  Offset,
  RecordInput,
  StreamLabel,
  StreamTarget,
} from '@throughline/protocol';
import { isComplete } from '../consume/batch-table.ts';
import type { BatchState } from '../consume/batch-table.ts';
import type { Mirror, OpenCall } from '../consume/open-call.ts';
import type { PartitionWriter } from './partition-writer.ts';

/** Characters that wait for a repeated request while its earlier messages are copied. */
const MAX_PENDING_CHARS = 4 * 1024 * 1024;

/** What an answer belongs to: a call, or a message that could not be read as one. */
type Answered = Pick<OpenCall, 'at' | 'stream' | 'key' | 'batch'>;

export class Settler {
  readonly #writer: PartitionWriter;
  readonly #owner: string;

  constructor(writer: PartitionWriter, claim: Offset) {
    this.#writer = writer;
    this.#owner = String(claim);
  }

  /** A message on the standalone stream. `false`: it is larger than a record may be, and was not written. */
  sendStandalone(key: string, json: string, among: readonly Offset[] = []): boolean {
    return this.#message(STANDALONE, key, json, { among });
  }

  /**
   * What the record of a producer at `at` of `inbound` says, on the standalone stream: one record, so that it is said and
   * marked as said at once. `false`: it is larger than a record may be, and was not written.
   */
  produced(key: string, json: string, at: Offset): boolean {
    return this.#message(STANDALONE, key, json, { answers: at });
  }

  /**
   * A notification or server request on the stream of a call. `false`: it is larger than a record may be, and was not written.
   * @param among requests of the client to any of which it may belong.
   */
  send(call: OpenCall, json: string, among: readonly Offset[] = []): boolean {
    if (call.state === 'done' || !this.#message(call.stream, call.key, json, { among })) return false;
    call.sent = true;
    for (const mirror of call.mirrors) {
      if (mirror.pending === null) this.send(mirror.call, json);
      else keepPending(mirror, { json, answer: false });
    }
    return true;
  }

  /** The response to a call: it ends its stream, or its part of a batch. Idempotent. */
  answer(call: OpenCall, json: string): void {
    if (call.state === 'done') return;
    this.#close(call);
    this.#answer(call, json, call.message.id);
    for (const mirror of call.mirrors) {
      if (mirror.pending === null) this.answer(mirror.call, json);
      else keepPending(mirror, { json, answer: true });
    }
  }

  fail(call: OpenCall, error: JsonRpcErrorObject): void {
    this.answer(call, JSON.stringify(errorResponse(call.message.id, error)));
  }

  /** What was not taken as a call ends its stream, or its part of a batch, with an error. `id`: `null` if it cannot be read. */
  failUntaken(answered: Answered, id: JsonRpcId | null, error: JsonRpcErrorObject): void {
    this.#answer(answered, JSON.stringify(errorResponse(id, error)), id);
  }

  /** Ends the stream of a cancelled call without a message. A member of a batch gets an error, since its stream goes on. */
  endCancelled(call: OpenCall): void {
    if (call.state === 'done') return;
    if (call.batch !== null) {
      this.fail(call, wireError('SERVER_FAILED', 'The request was cancelled'));
      return;
    }
    this.#close(call);
    void this.#control(EVENT_TYPE.ended, call.key, { stream: formatTarget(call.stream) });
    for (const mirror of call.mirrors) this.endCancelled(mirror.call);
  }

  /** All members of a batch were seen after all its requests were answered: the stream ends now. */
  endBatch(batch: BatchState): void {
    batch.hasEnded = true;
    void this.#control(EVENT_TYPE.ended, batch.key, { stream: `r${batch.first}` });
  }

  /** Everything that waited while a repetition was brought level. */
  level(mirror: Mirror): void {
    const pending = mirror.pending ?? [];
    mirror.pending = null;
    for (const { json, answer } of pending) {
      if (answer) this.answer(mirror.call, json);
      else this.send(mirror.call, json);
    }
  }

  closeStream(key: string, target: StreamTarget): void {
    void this.#control(EVENT_TYPE.closed, key, { stream: formatTarget(target) });
  }

  started(call: OpenCall): Promise<Offset> {
    return this.#control(EVENT_TYPE.started, call.key, { stream: `r${call.at}`, attempt: String(call.attempt) });
  }

  alias(call: OpenCall, of: StreamLabel): Promise<Offset> {
    return this.#control(EVENT_TYPE.alias, call.key, { stream: `${formatTarget(call.stream)}=${formatTarget(of)}` });
  }

  sessionEnded(key: string, reason: string): Promise<Offset> {
    return this.#writer.write(
      makeRecord(EVENT_TYPE.sessionEnded, key, JSON.stringify({ reason }), { owner: this.#owner }),
      key,
    );
  }

  /** `null`: it is larger than a record may be, and was not written. */
  checkpoint(value: string): Promise<Offset> | null {
    const record = makeRecord(EVENT_TYPE.checkpoint, null, value, { owner: this.#owner });
    return this.#writer.fits(record) ? this.#writer.write(record) : null;
  }

  released(): Promise<Offset> {
    return this.#writer.write(makeRecord(EVENT_TYPE.released, null, null, { owner: this.#owner }));
  }

  #close(call: OpenCall): void {
    call.state = 'done';
    call.cancelTimer?.();
    call.cancelTimer = null;
  }

  #answer({ at, stream, key, batch }: Answered, json: string, id: JsonRpcId | null): void {
    if (batch !== null) batch.answered++;
    const end = batch === null || (isComplete(batch) && !batch.hasEnded);
    if (batch !== null && end) batch.hasEnded = true;
    const extra = { end, ...(batch === null ? {} : { answers: at }) };
    if (this.#message(stream, key, json, extra)) return;
    const error = wireError('RESULT_TOO_LARGE', 'The result is larger than a record of the log may be', {
      mayHaveRun: true,
    });
    if (this.#message(stream, key, JSON.stringify(errorResponse(id, error)), extra)) return;
    // An id as long as a record: nobody can be told, but nothing waits for ever.
    if (end) void this.#control(EVENT_TYPE.ended, key, { stream: formatTarget(stream) });
  }

  #message(
    stream: StreamTarget,
    key: string,
    json: string,
    extra: { readonly end?: boolean; readonly answers?: Offset; readonly among?: readonly Offset[] },
  ): boolean {
    const record = makeRecord(EVENT_TYPE.message, key, encodeText(json), {
      stream: formatTarget(stream),
      owner: this.#owner,
      end: extra.end === true ? '1' : null,
      answers: extra.answers === undefined ? null : String(extra.answers),
      among: extra.among === undefined || extra.among.length === 0 ? null : extra.among.join(),
    });
    if (!this.#writer.fits(record)) return false;
    void this.#writer.write(record, key);
    return true;
  }

  /** Nobody has to listen to the promise. */
  #control(type: string, key: string, fields: Parameters<typeof makeRecord>[3]): Promise<Offset> {
    const record: RecordInput = makeRecord(type, key, null, { ...fields, owner: this.#owner });
    return this.#writer.write(record, key);
  }
}

function keepPending(mirror: Mirror, copy: { readonly json: string; readonly answer: boolean }): void {
  if (mirror.hasOverflowed) return;
  mirror.pendingChars += copy.json.length;
  if (mirror.pendingChars <= MAX_PENDING_CHARS || mirror.pending?.length === 0) {
    mirror.pending?.push(copy);
    return;
  }
  mirror.hasOverflowed = true;
  mirror.pending = [];
}
