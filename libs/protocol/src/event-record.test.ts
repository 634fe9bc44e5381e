import { describe, expect, it } from 'vitest';
import {
  formatBatchIds,
  formatTarget,
  isIdempotencyKey,
  makeRecord,
  readEventRecord,
  readInboundRecord,
  streamOfRequest,
} from './event-record.ts';
import { decodeText, encodeText } from './record.ts';
import type { LogRecord } from './record.ts';
import { requestStream, standaloneStream } from './stream-label.ts';

type Fields = readonly (readonly [name: string, value: string | Uint8Array])[];

function record(key: string | null, headers: Fields, offset = 100): LogRecord {
  return {
    key: key === null ? null : encodeText(key),
    value: encodeText('{}'),
    headers: headers.map(([name, value]) => [name, typeof value === 'string' ? encodeText(value) : value]),
    offset,
    timestampMs: 1767225600000,
  };
}

const claimed: Fields = [
  ['v', '1'],
  ['type', 'owner.claimed'],
];

describe('events', () => {
  it.each<[string, string | null, Fields]>([
    ['no type', 'k', [['v', '1']]],
    ['an empty type', 'k', [['type', '']]],
    ['an unknown type', 'k', [['type', 'stream.paused'], ['stream', 'r1']]], // prettier-ignore
    ['a type of inbound', 'k', [['type', 'session.end']]],
    ['a type in capitals', 'k', [['type', 'Message'], ['stream', 'r1']]], // prettier-ignore
    ['another format', 'k', [['v', '2'], ['type', 'message'], ['stream', 'r1']]], // prettier-ignore
    ['an empty format', 'k', [['v', ''], ['type', 'message'], ['stream', 'r1']]], // prettier-ignore
    ['no key', null, [['type', 'message'], ['stream', 'r1']]], // prettier-ignore
    ['an empty key', '', [['type', 'stream.attached'], ['stream', 's'], ['attachment', 'a']]], // prettier-ignore
    ['no key on an end of session', null, [['type', 'session.ended']]],
    ['a message without stream', 'k', [['type', 'message']]],
    ['a message on a named standalone stream', 'k', [['type', 'message'], ['stream', 's104']]], // prettier-ignore
    ['a message on a stream with a leading zero', 'k', [['type', 'message'], ['stream', 'r07']]], // prettier-ignore
    ['a message on a stream beyond 2^53', 'k', [['type', 'message'], ['stream', 'r9007199254740992']]], // prettier-ignore
    ['a message on a stream with a request id', 'k', [['type', 'message'], ['stream', 'r7~1']]], // prettier-ignore
    ['bytes that are not UTF-8 as stream', 'k', [['type', 'message'], ['stream', Uint8Array.of(0x72, 0xff)]]], // prettier-ignore
    ['a byte order mark before the stream', 'k', [['type', 'message'], ['stream', '\uFEFFr7']]], // prettier-ignore
    ['an answer to no request', 'k', [['type', 'message'], ['stream', 'r7'], ['answers', '']]], // prettier-ignore
    ['an answer to a request with a leading zero', 'k', [['type', 'message'], ['stream', 'r7'], ['answers', '08']]], // prettier-ignore
    ['an attachment without stream', 'k', [['type', 'stream.attached'], ['attachment', 'a']]], // prettier-ignore
    ['an attachment without name', 'k', [['type', 'stream.attached'], ['stream', 's']]], // prettier-ignore
    ['an attachment with an empty name', 'k', [['type', 'stream.attached'], ['stream', 's'], ['attachment', '']]], // prettier-ignore
    ['a close without stream', 'k', [['type', 'stream.closed']]],
    ['an end of a standalone stream', 'k', [['type', 'stream.ended'], ['stream', 's']]], // prettier-ignore
    ['an end of a named standalone stream', 'k', [['type', 'stream.ended'], ['stream', 's4']]], // prettier-ignore
    ['a start without stream', 'k', [['type', 'request.started']]],
    ['a start on a standalone stream', 'k', [['type', 'request.started'], ['stream', 's']]], // prettier-ignore
    ['a start with attempt 0', 'k', [['type', 'request.started'], ['stream', 'r1'], ['attempt', '0']]], // prettier-ignore
    ['a start with an empty attempt', 'k', [['type', 'request.started'], ['stream', 'r1'], ['attempt', '']]], // prettier-ignore
    ['a start with a negative attempt', 'k', [['type', 'request.started'], ['stream', 'r1'], ['attempt', '-1']]], // prettier-ignore
    ['an alias of nothing', 'k', [['type', 'stream.alias'], ['stream', 'r2']]], // prettier-ignore
    ['an alias of an empty stream', 'k', [['type', 'stream.alias'], ['stream', 'r2=']]], // prettier-ignore
    ['an alias of a standalone stream', 'k', [['type', 'stream.alias'], ['stream', 'r2=s']]], // prettier-ignore
    ['an alias with a third stream', 'k', [['type', 'stream.alias'], ['stream', 'r2=r1=r0']]], // prettier-ignore
    ['an alias with something behind it', 'k', [['type', 'stream.alias'], ['stream', 'r2=r1=']]], // prettier-ignore
    ['a claim without predecessor', null, claimed],
    ['a claim with an empty predecessor', null, [...claimed, ['predecessor', '']]],
    ['a claim with a negative predecessor', null, [...claimed, ['predecessor', '-1']]],
    ['a claim with another word for none', null, [...claimed, ['predecessor', 'None']]],
    ['a checkpoint without owner', null, [['type', 'owner.checkpoint']]],
    ['a release without owner', null, [['type', 'owner.released']]],
    ['an owner that is no offset', 'k', [['type', 'message'], ['stream', 'r1'], ['owner', 'me']]], // prettier-ignore
    ['an empty owner', 'k', [['type', 'message'], ['stream', 'r1'], ['owner', '']]], // prettier-ignore
    ['an owner with a leading zero', null, [['type', 'owner.released'], ['owner', '01']]], // prettier-ignore
  ])('[REC-UNREADABLE] %s makes a record unreadable', (_, key, headers) => {
    expect(readEventRecord(record(key, headers))).toEqual({ unreadable: expect.stringMatching(/^.{1,200}$/) });
  });

  it('[REC-HEADERS] without v a record is read as format 1', () => {
    const read = readEventRecord(record('k', [['type', 'message'], ['stream', 'r1']])); // prettier-ignore
    expect(read).toMatchObject({
      key: 'k',
      owner: null,
      body: { type: 'message', stream: requestStream(1), end: false },
    });
  });

  it('[REC-HEADERS] of a header that is there twice the first one counts', () => {
    const twice = record('k', [['type', 'message'], ['stream', 'r1'], ['stream', 'r2'], ['type', 'session.ended']]); // prettier-ignore
    expect(readEventRecord(twice)).toMatchObject({ body: { type: 'message', stream: requestStream(1) } });
  });

  it.each(['0', 'true', '', '11'])('[REC-HEADERS] only the text 1 ends a stream, %j does not', (end) => {
    const message = record('k', [['type', 'message'], ['stream', 'r1'], ['end', end]]); // prettier-ignore
    expect(readEventRecord(message)).toMatchObject({ body: { end: false } });
  });

  it('[REC-HEADERS] a start without attempt is the first, a message without answers answers its stream', () => {
    const started = record('k', [['type', 'request.started'], ['stream', 'r1']]); // prettier-ignore
    expect(readEventRecord(started)).toMatchObject({ body: { type: 'started', attempt: 1 } });
    const message = record('k', [['type', 'message'], ['stream', 'r1']]); // prettier-ignore
    expect(readEventRecord(message)).toMatchObject({ body: { type: 'message', answers: null } });
    const member = record('k', [['type', 'message'], ['stream', 'r1'], ['answers', '3']]); // prettier-ignore
    expect(readEventRecord(member)).toMatchObject({ body: { stream: requestStream(1), answers: 3 } });
  });

  it.each(['', '3,', '3,x', '03', '*'])(
    '[REC-AMONG] a message whose header among is %j belongs to any call that runs, and is read',
    (among) => {
      const message = record('k', [['type', 'message'], ['stream', 's'], ['among', among]]); // prettier-ignore
      expect(readEventRecord(message)).toMatchObject({ body: { type: 'message', stream: 's', among: 'unknown' } });
    },
  );

  it("[REC-AMONG] without the header a message is nobody else's; with a list it names the requests", () => {
    const message = record('k', [['type', 'message'], ['stream', 's']]); // prettier-ignore
    expect(readEventRecord(message)).toMatchObject({ body: { among: [] } });
    const shared = record('k', [['type', 'message'], ['stream', 's'], ['among', '3,7']]); // prettier-ignore
    expect(readEventRecord(shared)).toMatchObject({ body: { among: [3, 7] } });
  });

  it('[REC-HEADERS] a claim names its predecessor, or none', () => {
    expect(readEventRecord(record(null, [...claimed, ['predecessor', 'none']]))).toMatchObject({
      key: '',
      body: { type: 'claimed', predecessor: null, worker: '', epoch: '' },
    });
    expect(
      readEventRecord(record(null, [...claimed, ['predecessor', '0'], ['worker', 'w'], ['epoch', 'e']])),
    ).toMatchObject({ body: { type: 'claimed', predecessor: 0, worker: 'w', epoch: 'e' } });
  });
});

describe('inbound', () => {
  const message: Fields = [
    ['v', '1'],
    ['type', 'message'],
    ['server', 'files'],
  ];

  it.each<[string, string | null, Fields]>([
    ['no type', 'k', [['v', '1']]],
    ['a type of events', 'k', [['type', 'session.ended']]],
    ['another format', 'k', [['v', '1.0'], ['type', 'message']]], // prettier-ignore
    ['no key', null, message],
    ['an empty key', '', [['type', 'session.end']]],
    ['a batch without count', 'k', [...message, ['batch', '0']]],
    ['an empty batch', 'k', [...message, ['batch', '']]],
    ['a batch of none', 'k', [...message, ['batch', '0/0']]],
    ['a member behind the last', 'k', [...message, ['batch', '2/2']]],
    ['a negative member', 'k', [...message, ['batch', '-1/2']]],
    ['a leading zero in a batch', 'k', [...message, ['batch', '00/2']]],
    ['three numbers in a batch', 'k', [...message, ['batch', '0/2/']]],
  ])('[REC-UNREADABLE] %s makes a record unreadable', (_, key, headers) => {
    expect(readInboundRecord(record(key, headers))).toEqual({ unreadable: expect.stringMatching(/^.{1,200}$/) });
  });

  it('[REC-HEADERS] what is left out has a default: version 2025-03-26, no batch, no after, empty names', () => {
    expect(readInboundRecord(record('k', [['type', 'message']]))).toMatchObject({
      offset: 100,
      key: 'k',
      body: { type: 'message', server: '', principal: '', version: '2025-03-26', batch: null, after: null },
    });
  });

  it.each(['', 'x', '-1', '007', '9007199254740992'])(
    '[REC-HEADERS] after is only a hint: %j counts as absent and loses no message',
    (after) => {
      expect(readInboundRecord(record('k', [...message, ['after', after]]))).toMatchObject({ body: { after: null } });
    },
  );

  function streamOf(offset: number, batch: string | null): unknown {
    const read = readInboundRecord(record('k', batch === null ? message : [...message, ['batch', batch]], offset));
    return 'unreadable' in read ? read.unreadable : streamOfRequest(read);
  }

  const produced = [
    ['type', 'producer.message'],
    ['idempotency-key', 'report-7'],
  ] as const;

  it('[PRD-KEY] a message of a producer has a name, and may have a time after which it is void', () => {
    expect(readInboundRecord(record('k', produced))).toMatchObject({
      key: 'k',
      body: { type: 'produced', server: '', idempotencyKey: 'report-7', untilMs: null },
    });
    expect(
      readInboundRecord(record('k', [...produced, ['until', '1767225601234'], ['server', 'files']])),
    ).toMatchObject({
      body: { server: 'files', untilMs: 1767225601234 },
    });
    for (const name of ['!', '~'.repeat(128), 'a/b:c']) expect(isIdempotencyKey(name)).toBe(true);
    for (const name of ['', ' ', 'a b', 'é', 'a\n', '~'.repeat(129)]) {
      expect(isIdempotencyKey(name)).toBe(false);
      const [type] = produced;
      expect(readInboundRecord(record('k', [type, ['idempotency-key', name]]))).toHaveProperty('unreadable');
    }
    expect(readInboundRecord(record('k', produced.slice(0, 1)))).toHaveProperty('unreadable');
    expect(readInboundRecord(record('k', [...produced, ['until', 'soon']]))).toHaveProperty('unreadable');
    expect(readInboundRecord(record('', produced))).toHaveProperty('unreadable');
  });

  it('[REC-BATCH] every member of a batch is answered on the stream of its first', () => {
    expect(streamOf(50, null)).toEqual(requestStream(50));
    expect([streamOf(50, '0/3'), streamOf(51, '1/3'), streamOf(52, '2/3')]).toEqual([50, 50, 50].map(requestStream));
    expect(streamOf(2, '2/3')).toEqual(requestStream(0));
  });

  it('[REC-BATCH] a member whose batch would begin before the log is unreadable', () => {
    expect(streamOf(1, '2/3')).toEqual(expect.any(String));
    expect(readInboundRecord(record('k', [...message, ['batch', '7/9']], 3))).toHaveProperty('unreadable');
  });

  it('[REC-BATCH-IDS] are read by place, and anything else counts as absent', () => {
    const idsOf = (text: string): unknown => {
      const read = readInboundRecord(record('k', [...message, ['batch', '1/3'], ['batch-ids', text]], 9));
      return 'unreadable' in read || read.body.type !== 'message' ? read : (read.body.batch?.ids ?? null);
    };
    expect(idsOf('["a",null,7]')).toEqual(['a', null, 7]);
    for (const text of ['', '{}', '[1,2]', '[1,2,3,4]', '[1,2,{}]', '[1,2,0.5]', `["${'x'.repeat(1100)}",1,2]`])
      expect(idsOf(text), text.slice(0, 20)).toBeNull();
    expect(formatBatchIds(['a', null, 7])).toBe('["a",null,7]');
    expect(formatBatchIds(['x'.repeat(1019), 1])).toBeNull();
    expect(formatBatchIds(['x'.repeat(1018), 1])).toHaveLength(1024);
  });

  it('[REC-BATCH] an end of session is answered on no stream of its own but its place', () => {
    const end = readInboundRecord(record('k', [['type', 'session.end'], ['server', 'files'], ['batch', '1/2']], 7)); // prettier-ignore
    expect(end).toMatchObject({ body: { type: 'sessionEnd', server: 'files' } });
  });
});

describe('writing', () => {
  it('[REC-HEADERS] v and type come first, then the fields in the order given; null fields are left out', () => {
    const written = makeRecord('message', 'k', '{"a":1}', {
      stream: 'r1',
      end: null,
      protocolVersion: '2025-11-25',
      owner: '5',
    });
    expect(written.headers.map(([name, value]) => `${name}=${decodeText(value)}`)).toEqual([
      'v=1',
      'type=message',
      'stream=r1',
      'mcp-version=2025-11-25',
      'owner=5',
    ]);
    expect(decodeText(written.key ?? new Uint8Array(0))).toBe('k');
    expect(decodeText(written.value ?? new Uint8Array(0))).toBe('{"a":1}');
  });

  it('[REC-HEADERS] key and value may be null, and a value in bytes is taken as it is', () => {
    const bytes = Uint8Array.of(0, 255);
    expect(makeRecord('owner.released', null, null, {})).toMatchObject({ key: null, value: null });
    expect(makeRecord('message', 'k', bytes, {}).value).toBe(bytes);
  });

  it('[REC-HEADERS] a target is a label, or s for the standalone stream in force', () => {
    expect([formatTarget('s'), formatTarget(requestStream(4)), formatTarget(standaloneStream(9))]).toEqual([
      's',
      'r4',
      's9',
    ]);
  });
});
