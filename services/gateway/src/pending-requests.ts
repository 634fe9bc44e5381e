/** The JSON-RPC ids that wait on a request stream: an error made here must settle each of them. */
import { deadline, hasLogCode } from '@throughline/log';
import type { PartitionRef, ReadBatch } from '@throughline/log';
import { classifyText, decodeText, readInboundRecord, streamOfRequest } from '@throughline/protocol';
import type { EventId, JsonRpcId, LogRecord, Offset } from '@throughline/protocol';
import type { GatewayContext, SessionRef } from './context.ts';

const MAX_BYTES = 256 * 1024;

/**
 * From the cursor, or from those of the request's own records that are still held; by offset in `inbound`. `null` if that
 * cannot be said now. Never rejects.
 */
export async function pendingRequests(
  context: GatewayContext,
  session: SessionRef,
  { stream, requestId }: EventId,
  signal: AbortSignal,
): Promise<ReadonlyMap<Offset, JsonRpcId> | null> {
  const ids = new Map<Offset, JsonRpcId>();
  if (stream.kind !== 'request') return ids;
  if (requestId !== undefined) return ids.set(stream.at, requestId);
  // Offsets of a former history name other requests.
  if (session.id.epoch !== context.current().epoch) return ids;
  const from = { topic: 'inbound', partition: session.id.partition } as const;
  const limit = deadline(context.clock, context.config.appendTimeoutMs, signal);
  try {
    let position = stream.at;
    for (;;) {
      const read = await readHeld(context, from, position, limit.signal);
      if ('start' in read) {
        // Retention took the first members of a batch, or all.
        position = read.start;
        continue;
      }
      const { records, next, bounds } = read;
      context.guard.noteRead(session.id.epoch, from, records.at(-1) ?? null, bounds.end);
      for (const record of records) {
        if (!isOfStream(record, session, stream.at)) return ids;
        const id = requestIdOf(record);
        if (id !== null) ids.set(record.offset, id);
      }
      if (records.length === 0 || next <= position) return ids;
      position = next;
    }
  } catch {
    return null;
  } finally {
    limit.dispose();
  }
}

/** What is held from `position` on, or where that begins if it is not there. Errors: those of `Log.read`. */
async function readHeld(
  { log }: GatewayContext,
  from: PartitionRef,
  position: Offset,
  signal: AbortSignal,
): Promise<ReadBatch | { readonly start: Offset }> {
  try {
    return await log.read(from, position, { maxBytes: MAX_BYTES, signal });
  } catch (error) {
    const start = hasLogCode(error, 'OFFSET_OUT_OF_RANGE') ? error.details.start : undefined;
    if (start === undefined || start <= position) throw error;
    return { start };
  }
}

/**
 * Whether `inbound` still holds the request that a stream answers; `null` if that cannot be said: the log does not
 * answer, or retention took it, as it does from calls that run for long. Never rejects.
 */
export async function holdsRequest(
  context: GatewayContext,
  session: SessionRef,
  at: Offset,
  signal: AbortSignal,
): Promise<boolean | null> {
  const from = { topic: 'inbound', partition: session.id.partition } as const;
  const limit = deadline(context.clock, context.config.keepAliveMs, signal);
  try {
    const { records } = await context.log.read(from, at, { maxBytes: 1, signal: limit.signal });
    const [record] = records;
    return record?.offset === at ? isOfStream(record, session, at) : null;
  } catch {
    return null;
  } finally {
    limit.dispose();
  }
}

/** A batch lies at consecutive offsets: the first record of another stream is behind it. */
function isOfStream(record: LogRecord, session: SessionRef, at: Offset): boolean {
  const inbound = readInboundRecord(record);
  if ('unreadable' in inbound || inbound.key !== session.id.key || inbound.body.type !== 'message') return false;
  return streamOfRequest(inbound).at === at;
}

function requestIdOf(record: LogRecord): JsonRpcId | null {
  const classified = classifyText(decodeText(record.value ?? new Uint8Array()));
  return 'kind' in classified && classified.kind === 'request' ? classified.message.id : null;
}
