import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatTarget, makeRecord, readEventRecord, readInboundRecord, streamOfRequest } from './event-record.ts';
import type { EventBody, InboundRecord, StreamTarget } from './event-record.ts';
import { EVENT_TYPE, HEADER, INBOUND_TYPE } from './headers.ts';
import { decodeText, encodeText } from './record.ts';
import type { LogRecord, RecordHeader, RecordInput } from './record.ts';
import { formatStreamLabel, parseStreamLabel, requestStream, standaloneStream } from './stream-label.ts';
import type { StreamLabel } from './stream-label.ts';

const offset = fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER));
/** Text without lone surrogates: what UTF-8 can hold. A byte order mark is one of them. */
const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constant('\uFEFF'), fc.constant('\uFEFFx\0\n'));
const filled = text.filter((value) => value !== '');
const key = fc.oneof(fc.stringMatching(/^[A-Za-z0-9_-]{22}$/), filled);
const request: fc.Arbitrary<StreamLabel> = offset.map(requestStream);
const inForce: fc.Arbitrary<StreamTarget> = fc.oneof(request, fc.constant('s' as const));
const target: fc.Arbitrary<StreamTarget> = fc.oneof(inForce, offset.map(standaloneStream));
const value = fc.oneof(fc.uint8Array({ maxLength: 50 }), fc.constant(null));

const body: fc.Arbitrary<EventBody> = fc.oneof(
  fc.record({
    type: fc.constant('message' as const),
    stream: inForce,
    end: fc.boolean(),
    answers: fc.option(offset),
    among: fc.oneof(fc.array(offset, { maxLength: 4 }), fc.constant('unknown' as const)),
  }),
  fc.record({ type: fc.constant('attached' as const), stream: target, attachment: filled }),
  fc.record({ type: fc.constant('closed' as const), stream: target }),
  fc.record({ type: fc.constant('ended' as const), stream: request }),
  fc.record({ type: fc.constant('alias' as const), stream: request, of: request }),
  fc.record({ type: fc.constant('started' as const), stream: request, attempt: fc.integer({ min: 1, max: 1000 }) }),
  fc.record({ type: fc.constant('sessionEnded' as const) }),
  fc.record({
    type: fc.constant('claimed' as const),
    predecessor: fc.option(offset),
    worker: text,
    epoch: text,
  }),
  fc.record({ type: fc.constant('checkpoint' as const) }),
  fc.record({ type: fc.constant('released' as const) }),
  fc.record({ type: fc.constant('probe' as const) }),
);

function write(event: EventBody, of: string, data: Uint8Array | null, owner: number | null): RecordInput {
  const claim = owner === null ? null : String(owner);
  switch (event.type) {
    case 'message':
      return makeRecord('message', of, data, {
        stream: formatTarget(event.stream),
        owner: claim,
        end: event.end ? '1' : null,
        answers: event.answers === null ? null : String(event.answers),
        among: event.among === 'unknown' ? '?' : event.among.length === 0 ? null : event.among.join(),
      });
    case 'attached':
      return makeRecord('stream.attached', of, data, {
        stream: formatTarget(event.stream),
        owner: claim,
        attachment: event.attachment,
      });
    case 'closed':
      return makeRecord('stream.closed', of, data, { stream: formatTarget(event.stream), owner: claim });
    case 'ended':
      return makeRecord('stream.ended', of, data, { stream: formatStreamLabel(event.stream), owner: claim });
    case 'started':
      return makeRecord('request.started', of, data, {
        stream: formatStreamLabel(event.stream),
        owner: claim,
        attempt: String(event.attempt),
      });
    case 'alias':
      return makeRecord('stream.alias', of, data, {
        stream: `${formatStreamLabel(event.stream)}=${formatStreamLabel(event.of)}`,
        owner: claim,
      });
    case 'sessionEnded':
      return makeRecord('session.ended', of, data, { owner: claim });
    case 'claimed':
      return makeRecord('owner.claimed', null, data, {
        predecessor: event.predecessor === null ? 'none' : String(event.predecessor),
        worker: event.worker,
        epoch: event.epoch,
        owner: claim,
      });
    case 'checkpoint':
      return makeRecord('owner.checkpoint', null, data, { owner: claim ?? '0' });
    case 'released':
      return makeRecord('owner.released', null, data, { owner: claim ?? '0' });
    case 'probe':
      return makeRecord('history.probe', null, data, { owner: claim });
  }
}

function at(input: RecordInput, place: number): LogRecord {
  return { ...input, offset: place, timestampMs: 1767225600000 };
}

describe('records of events', () => {
  it('[REC-HEADERS] what was written is read back as the same body, key and owner, whatever the value', () => {
    fc.assert(
      fc.property(body, key, value, fc.option(offset), offset, (event, of, data, owner, place) => {
        const record = at(write(event, of, data, owner), place);
        const ofPartition = ['claimed', 'checkpoint', 'released', 'probe'].includes(event.type);
        const needsOwner = event.type === 'checkpoint' || event.type === 'released';
        expect(readEventRecord(record)).toEqual({
          offset: place,
          key: ofPartition ? '' : of,
          owner: owner ?? (needsOwner ? 0 : null),
          body: event,
          record,
        });
      }),
      { numRuns: 2000 },
    );
  });

  it('[REC-HEADERS] headers that are not known, in any place, change nothing', () => {
    const extra = fc.array(
      fc.tuple(
        fc.string({ minLength: 1 }).map((name) => `x-${name}`),
        fc.uint8Array(),
      ),
      {
        maxLength: 3,
      },
    );
    fc.assert(
      fc.property(body, key, extra, extra, (event, of, before, after) => {
        const record = at(write(event, of, null, 5), 9);
        const extended = { ...record, headers: [...before, ...record.headers, ...after] };
        expect(readEventRecord(extended)).toEqual({ ...readEventRecord(record), record: extended });
      }),
    );
  });
});

describe('records of inbound', () => {
  const batch = fc.option(
    fc.tuple(fc.nat(1000), fc.nat(1000)).map(([index, more]) => ({ index, count: index + 1 + more })),
  );
  const inbound: fc.Arbitrary<Exclude<InboundRecord['body'], { readonly type: 'probe' }>> = fc.oneof(
    fc.record({
      type: fc.constant('message' as const),
      server: text,
      principal: text,
      version: text,
      batch,
      after: fc.option(offset),
    }),
    fc.record({ type: fc.constant('sessionEnd' as const), server: text }),
    fc.record({
      type: fc.constant('produced' as const),
      server: text,
      idempotencyKey: fc.stringMatching(/^[!-~]{1,128}$/),
      untilMs: fc.option(offset),
    }),
  );
  const written = (
    asked: Exclude<InboundRecord['body'], { readonly type: 'probe' }>,
    of: string,
    data: Uint8Array | null,
  ): RecordInput => {
    switch (asked.type) {
      case 'sessionEnd':
        return makeRecord('session.end', of, data, { server: asked.server });
      case 'produced':
        return makeRecord('producer.message', of, data, {
          server: asked.server,
          idempotencyKey: asked.idempotencyKey,
          until: asked.untilMs === null ? null : String(asked.untilMs),
        });
      case 'message':
        return makeRecord('message', of, data, {
          server: asked.server,
          principal: asked.principal,
          protocolVersion: asked.version,
          batch: asked.batch === null ? null : `${asked.batch.index}/${asked.batch.count}`,
          after: asked.after === null ? null : String(asked.after),
        });
    }
  };

  it('[REC-HEADERS] what was written is read back as the same body and key, whatever the value', () => {
    fc.assert(
      fc.property(
        inbound,
        key,
        value,
        fc.integer({ min: 1000, max: Number.MAX_SAFE_INTEGER }),
        (asked, of, data, place) => {
          const input = written(asked, of, data);
          const record = at(input, place);
          expect(readInboundRecord(record)).toEqual({ offset: place, key: of, body: asked, record });
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe('any record', () => {
  const plausible = fc
    .oneof(
      fc.constantFrom(...Object.values(EVENT_TYPE), ...Object.values(INBOUND_TYPE), 's', 'none', '1', '0/1', '7/9'),
      offset.map(String),
      target.map(formatTarget),
      fc.tuple(target, target).map(([one, other]) => `${formatTarget(one)}=${formatTarget(other)}`),
      fc.string({ unit: 'binary' }),
    )
    .map(encodeText);
  const header: fc.Arbitrary<RecordHeader> = fc.tuple(
    fc.oneof(fc.constantFrom(...Object.values(HEADER)), fc.constantFrom('__proto__', 'constructor', ''), fc.string()),
    fc.oneof(plausible, fc.uint8Array()),
  );
  const typed = fc
    .constantFrom(...Object.values(EVENT_TYPE), ...Object.values(INBOUND_TYPE))
    .map((type): RecordHeader[] => [['type', encodeText(type)]]);
  const record: fc.Arbitrary<LogRecord> = fc.record({
    key: fc.oneof(fc.uint8Array(), fc.constant(null)),
    value,
    headers: fc
      .tuple(fc.oneof(typed, fc.constant([])), fc.array(header, { maxLength: 8 }))
      .map(([type, others]) => [...type, ...others]),
    offset,
    timestampMs: fc.maxSafeNat(),
  });

  it('[REC-UNREADABLE] is read or is unreadable with a short reason; no reader throws', () => {
    const streamOf = (stream: StreamTarget): void => {
      if (stream !== 's') expect(parseStreamLabel(formatStreamLabel(stream))).toEqual(stream);
    };
    fc.assert(
      fc.property(record, (any) => {
        const event = readEventRecord(any);
        if ('unreadable' in event) expect(event.unreadable.length).toBeLessThan(500);
        else if ('stream' in event.body) streamOf(event.body.stream);
        const inbound = readInboundRecord(any);
        if ('unreadable' in inbound) expect(inbound.unreadable.length).toBeLessThan(500);
        else streamOf(streamOfRequest(inbound));
      }),
      { numRuns: 5000 },
    );
  });

  it('[REC-HEADERS] means the same whatever its value holds', () => {
    fc.assert(
      fc.property(record, value, (any, other) => {
        const { record: _one, ...one } = { record: null, ...readEventRecord(any) };
        const { record: _two, ...two } = { record: null, ...readEventRecord({ ...any, value: other }) };
        expect(two).toEqual(one);
      }),
      { numRuns: 1000 },
    );
  });

  it('[REC-TEXT] text survives as UTF-8, a byte order mark included, and other bytes never throw', () => {
    fc.assert(
      fc.property(text, (any) => {
        expect(decodeText(encodeText(any))).toBe(any);
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(typeof decodeText(bytes)).toBe('string');
      }),
    );
  });
});
