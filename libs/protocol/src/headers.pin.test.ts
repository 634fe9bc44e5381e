import { describe, expect, it } from 'vitest';
import * as headers from './headers.ts';
import { COMPACTED_TOPICS, META_KEY, sessionEndKey, TOPICS } from './topic.ts';

describe('names on the wire', () => {
  it('[REC-NAMES] headers of records', () => {
    expect(headers.HEADER).toEqual({
      format: 'v',
      type: 'type',
      server: 'server',
      stream: 'stream',
      owner: 'owner',
      end: 'end',
      principal: 'principal',
      traceparent: 'traceparent',
      batch: 'batch',
      batchIds: 'batch-ids',
      after: 'after',
      attachment: 'attachment',
      predecessor: 'predecessor',
      worker: 'worker',
      protocolVersion: 'mcp-version',
      epoch: 'epoch',
      answers: 'answers',
      among: 'among',
      attempt: 'attempt',
      idempotencyKey: 'idempotency-key',
      until: 'until',
    });
    expect([headers.RECORD_FORMAT, headers.STANDALONE, headers.NO_PREDECESSOR]).toEqual(['1', 's', 'none']);
  });

  it('[REC-NAMES] types of records', () => {
    expect(headers.INBOUND_TYPE).toEqual({
      message: 'message',
      sessionEnd: 'session.end',
      produced: 'producer.message',
      probe: 'history.probe',
    });
    expect(headers.EVENT_TYPE).toEqual({
      message: 'message',
      attached: 'stream.attached',
      closed: 'stream.closed',
      ended: 'stream.ended',
      alias: 'stream.alias',
      started: 'request.started',
      sessionEnded: 'session.ended',
      claimed: 'owner.claimed',
      checkpoint: 'owner.checkpoint',
      released: 'owner.released',
      probe: 'history.probe',
    });
  });

  it('[REC-NAMES] topics and the keys of compacted ones', () => {
    expect(TOPICS).toEqual(['inbound', 'events', 'sessions', 'meta', 'dead-letter']);
    expect(COMPACTED_TOPICS).toEqual(['sessions', 'meta']);
    expect([
      META_KEY.epoch('k7q2fabcde'),
      META_KEY.mark('k7q2fabcde', 'inbound', 3),
      META_KEY.checkpoint('k7q2fabcde', 3),
      META_KEY.worker('w1'),
      META_KEY.secret,
      sessionEndKey('abc'),
    ]).toEqual([
      'epoch/k7q2fabcde',
      'mark/k7q2fabcde/inbound/3',
      'checkpoint/k7q2fabcde/3',
      'worker/w1',
      'secret',
      'abc/end',
    ]);
  });

  it('[REC-NAMES] HTTP headers and MCP revisions', () => {
    expect(headers.HTTP_HEADER).toEqual({
      sessionId: 'Mcp-Session-Id',
      protocolVersion: 'MCP-Protocol-Version',
      lastEventId: 'Last-Event-ID',
      replayEpoch: 'X-MCP-Replay-Epoch',
      replayFrom: 'X-MCP-Replay-From',
    });
    expect(headers.LEGACY_VERSIONS).toEqual(['2025-03-26', '2025-06-18', '2025-11-25']);
    expect([headers.FIRST_VERSION_WITH_PRIMING, headers.BATCH_VERSION]).toEqual(['2025-11-25', '2025-03-26']);
    const asked = ['2025-03-26', '2025-11-25', '2024-11-05', '2026-07-28', '', 'toString'];
    expect(asked.map(headers.isLegacyVersion)).toEqual([true, true, false, false, false, false]);
    expect(asked.map(headers.isOlderVersion)).toEqual([false, false, true, false, false, false]);
    expect(headers.isOlderVersion('2024-10-07')).toBe(true);
    expect(asked.map(headers.isLaterVersion)).toEqual([false, false, false, true, false, false]);
    expect(['2025-11-26', '2026-07-28 ', '2026', '9'].map(headers.isLaterVersion)).toEqual([true, false, false, false]);
  });
});
