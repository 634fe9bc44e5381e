import { ResumptionRejected, TransportError } from '@throughline/client';
import { describe, expect, it } from 'vitest';
import {
  describeError,
  describeLost,
  describeOrphan,
  describeRestored,
  describeRetry,
  describeUnproven,
} from './describe-trouble.ts';
import { makeTeller } from './teller.ts';

describe('what is told', () => {
  it('[CONNECT-TELLS] a lost session says why, how many calls failed, and how many of them may have run', () => {
    const rejection = new ResumptionRejected('gap', '7 follows 4', { sessionId: 'secret', lastEventId: 'x' });
    const failedCalls = [
      { id: 1, method: 'tools/call', mayHaveRun: true },
      { id: 2, method: 'tools/call', mayHaveRun: false },
    ];
    expect(describeLost({ rejection, sessionId: 'secret', failedCalls, cancelledRequests: [3] })).toBe(
      'the session is over: Resumption rejected (gap): 7 follows 4; 2 calls failed, 1 of which may have run; 1 request of the server cancelled',
    );
  });

  it('[CONNECT-TELLS] a new session says what could not be made again, and that the server has changed', () => {
    const restored = {
      sessionId: 's',
      initializeResult: { capabilities: { tools: {} } },
      notRestored: [{ method: 'resources/subscribe', uri: 'a:b', message: 'unknown' }],
    };
    expect(describeRestored(restored, { capabilities: { tools: {} } })).toEqual([
      'a new session was begun',
      'resources/subscribe of a:b could not be made again: unknown',
    ]);
    expect(describeRestored(restored, { capabilities: {} })[2]).toContain('restart the client');
  });

  it('[CONNECT-TELLS] an answer that nobody waits for, what is not proved, and the cause of an error are named', () => {
    const response = { jsonrpc: '2.0', id: 1, result: { content: 'private' } } as const;
    expect(describeOrphan({ method: 'tools/call', response })).toBe(
      'a call that a former process made (tools/call) has ended with a result; nobody waits for it any more',
    );
    expect(describeUnproven({ stream: 'request', eventId: null, facts: ['epoch', 'sequence'] })).toBe(
      'the stream of a call goes on, but this server does not prove epoch, sequence',
    );
    const system = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    const cause = new TypeError('fetch failed', { cause: system });
    expect(describeError(new TransportError('UNREACHABLE', 'No way', { cause }))).toBe(
      'No way (fetch failed: ECONNREFUSED)',
    );
  });

  it('[CONNECT-TELLS] a server that is away is told with its attempts, and once a minute all the same', () => {
    const lines: string[] = [];
    let now = 0;
    const tell = makeTeller(
      (line) => lines.push(line),
      () => now,
    );
    const cause = new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) });
    for (let attempt = 1; attempt <= 7; attempt++) {
      const error = new TransportError('UNREACHABLE', 'The server at http://a cannot be reached: ECONNREFUSED', {
        cause,
        causeCode: 'ECONNREFUSED',
      });
      error.retry = { attempt, inMs: 9940 };
      tell(describeError(error), describeRetry(error));
      now += 10_000;
    }
    const line = (attempt: number): string =>
      `throughline connect: The server at http://a cannot be reached: ECONNREFUSED; attempt ${attempt}, the next in 9.9 s\n`;
    expect(lines).toEqual([line(1), line(7)]);
    expect(describeRetry(new TransportError('CLOSED', 'x'))).toBe('');
  });

  it('[CONNECT-TELLS] the same line is told once a minute, and no server can begin a line of its own', () => {
    const lines: string[] = [];
    let now = 0;
    const tell = makeTeller(
      (line) => lines.push(line),
      () => now,
    );
    tell('away');
    now = 59_000;
    tell('away');
    tell('other\nthroughline connect: forged\u001b[2J\u2028');
    now = 60_000;
    tell('away');
    expect(lines).toEqual([
      'throughline connect: away\n',
      'throughline connect: other throughline connect: forged [2J \n',
      'throughline connect: away\n',
    ]);
    tell('x'.repeat(10_000));
    expect(lines[3]?.length).toBe('throughline connect: '.length + 501);
  });
});
