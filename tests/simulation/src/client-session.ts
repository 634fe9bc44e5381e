/** A session as a simulated client knows it: its calls, the streams that it was given cursors of, and what it answered. */
import type { CallRecord, SessionRecordOfRun } from './records-of-run.ts';

/** One stream as the client knows it: the cursors that it was given, the newest last. */
interface KnownStream {
  readonly cursors: { readonly id: string }[];
}

export interface ClientSession {
  readonly record: SessionRecordOfRun;
  readonly calls: Map<string, CallRecord>;
  readonly streams: Map<string, KnownStream>;
  readonly answered: Set<string>;
  /** Fires when the session is known to be over. */
  readonly over: AbortController;
}

const MAX_CURSORS = 50;

export const idKey = (id: unknown): string => JSON.stringify(id);
const streamOfCursor = (id: string): string => id.split('.')[3]?.split('~')[0] ?? '';

export function newSession(record: SessionRecordOfRun): ClientSession {
  return { record, calls: new Map(), streams: new Map(), answered: new Set(), over: new AbortController() };
}

export function rememberCursor(session: ClientSession, id: string): void {
  // An error of the gateway's own is no place to go on from.
  if (id.split('.')[4] === 'end') return;
  const label = streamOfCursor(id);
  const stream = session.streams.get(label) ?? { cursors: [] };
  session.streams.set(label, stream);
  if (stream.cursors.at(-1)?.id === id) return;
  stream.cursors.push({ id });
  if (stream.cursors.length > MAX_CURSORS) stream.cursors.splice(1, 1);
}

/** Cursors of the stream of this one, the newest last. */
export function cursorsBeside(session: ClientSession, cursor: string): readonly { readonly id: string }[] {
  return session.streams.get(streamOfCursor(cursor))?.cursors ?? [];
}
