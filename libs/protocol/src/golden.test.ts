import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { extendChain, formatEventId, parseEventId, startChain, streamTag } from './event-id.ts';
import type { EventId } from './event-id.ts';
import { readEventRecord, readInboundRecord } from './event-record.ts';
import { anchorChecksum, encodeText } from './record.ts';
import type { LogRecord } from './record.ts';
import { signSessionId, verifySessionId } from './session-id.ts';
import type { SessionBinding, SessionId } from './session-id.ts';

// Files that version 1 wrote. Do not mend them: a version that reads them in another way breaks living sessions and
// logs. Fields may be added to what a record reads as, so a record must hold what is here, and may hold more.
function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
}

interface SessionCase {
  readonly text: string;
  readonly secret: string;
  readonly binding: SessionBinding;
}
interface EventIdCase {
  readonly text: string;
  readonly sessionId: string;
  readonly payloads: readonly string[];
  readonly id: Omit<EventId, 'tag' | 'chain'> & { readonly tag: string; readonly chain: string };
}
interface RecordCase {
  readonly topic: 'events' | 'inbound';
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: readonly (readonly [name: string, value: string | { readonly base64: string }])[];
  readonly offset: number;
  readonly timestampMs: number;
  readonly checksum: number;
  /** `null`: unreadable. */
  readonly reads: object | null;
}

const sessionIds = readJson('../../../fixtures/v1/session-ids.json') as {
  readonly accepted: readonly (SessionCase & { readonly id: SessionId })[];
  readonly refused: readonly SessionCase[];
};
const eventIds = readJson('../../../fixtures/v1/event-ids.json') as {
  readonly accepted: readonly EventIdCase[];
  readonly refused: readonly string[];
};
const { records } = readJson('../../../fixtures/v1/records.json') as { readonly records: readonly RecordCase[] };

const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, 'hex'));

describe('session ids of version 1', () => {
  it.each(sessionIds.accepted)(
    '[SID-GOLDEN] $text is verified as the same session',
    ({ text, secret, binding, id }) => {
      expect(verifySessionId(text, binding, [bytes(secret)])).toEqual(id);
      expect(signSessionId(id, binding, bytes(secret))).toBe(text);
    },
  );

  it.each(sessionIds.refused)('[SID-GOLDEN] $text is refused', ({ text, secret, binding }) => {
    expect(verifySessionId(text, binding, [bytes(secret)])).toBeNull();
  });
});

describe('event ids of version 1', () => {
  it.each(eventIds.accepted)('[ID-GOLDEN] $text is read and written the same', ({ text, sessionId, payloads, id }) => {
    const expected = { ...id, tag: bytes(id.tag), chain: bytes(id.chain) };
    expect(parseEventId(text)).toEqual(expected);
    expect(formatEventId(expected)).toBe(text);
    expect(streamTag(sessionId, id.stream)).toEqual(expected.tag);
    expect(payloads.map(encodeText).reduce(extendChain, startChain(sessionId, id.stream))).toEqual(expected.chain);
  });

  it.each(eventIds.refused)('[ID-GOLDEN] %j is refused', (text) => {
    expect(parseEventId(text)).toBeNull();
  });
});

function recordOf({ key, value, headers, offset, timestampMs }: RecordCase): LogRecord {
  return {
    key: key === null ? null : encodeText(key),
    value: value === null ? null : encodeText(value),
    headers: headers.map(([name, text]) => [
      name,
      typeof text === 'string' ? encodeText(text) : Uint8Array.from(Buffer.from(text.base64, 'base64')),
    ]),
    offset,
    timestampMs,
  };
}

const schemas = {
  events: z.fromJSONSchema(readJson('../schema/event-record.json') as Parameters<typeof z.fromJSONSchema>[0]),
  inbound: z.fromJSONSchema(readJson('../schema/inbound-record.json') as Parameters<typeof z.fromJSONSchema>[0]),
};

describe('records of version 1', () => {
  const cases = records.map((entry) => [`${entry.topic} ${entry.offset}`, entry] as const);

  it.each(cases)('[REC-GOLDEN] %s reads the same, or is unreadable as before', (_, entry) => {
    const record = recordOf(entry);
    const read = entry.topic === 'events' ? readEventRecord(record) : readInboundRecord(record);
    if (entry.reads === null) expect(read).toEqual({ unreadable: expect.any(String) });
    else expect(read).toMatchObject({ ...entry.reads, offset: entry.offset });
  });

  it.each(cases)('[REC-GOLDEN] %s has the same checksum', (_, entry) => {
    expect(anchorChecksum(recordOf(entry))).toBe(entry.checksum);
  });

  it.each(cases)('[REC-SCHEMA] the published schema and the reader agree on %s', (_, entry) => {
    const { topic, key, headers } = entry;
    const texts = headers.map(([name, text]) => [name, typeof text === 'string' ? text : atob(text.base64)]);
    const valid = schemas[topic].safeParse({ key, headers: Object.fromEntries(texts) as unknown }).success;
    expect(valid).toBe(entry.reads !== null);
  });

  it('[REC-GOLDEN] there is a readable record of every type', () => {
    const readable = records.filter(({ reads }) => reads !== null);
    const types = readable.map(
      ({ topic, headers }) => `${topic} ${String(headers.find(([name]) => name === 'type')?.[1])}`,
    );
    expect([...new Set(types)].toSorted()).toEqual([
      'events history.probe',
      'events message',
      'events owner.checkpoint',
      'events owner.claimed',
      'events owner.released',
      'events request.started',
      'events session.ended',
      'events stream.alias',
      'events stream.attached',
      'events stream.closed',
      'events stream.ended',
      'inbound history.probe',
      'inbound message',
      'inbound producer.message',
      'inbound session.end',
    ]);
  });
});
