import { describe, expect, it } from 'vitest';
import { readFailure } from './read-failure.ts';

const system = (fields: object): Error => Object.assign(new Error('of the system'), fields);
const fetchFailed = (cause: unknown): Error => new TypeError('fetch failed', { cause });
const refused = system({ code: 'ECONNREFUSED', syscall: 'connect' });
const reset = system({ code: 'ECONNRESET', syscall: 'read' });

describe('a request that failed', () => {
  it.each<[title: string, error: unknown, causeCode: string | undefined, wasUnsent: boolean]>([
    ['a refused connection', fetchFailed(refused), 'ECONNREFUSED', true],
    ['a name that is not found', fetchFailed(system({ code: 'ENOTFOUND', syscall: 'getaddrinfo' })), 'ENOTFOUND', true],
    [
      'names that cannot be asked',
      fetchFailed(system({ code: 'EAI_AGAIN', syscall: 'getaddrinfo' })),
      'EAI_AGAIN',
      true,
    ],
    [
      'a connection that is not made in time',
      fetchFailed(system({ code: 'UND_ERR_CONNECT_TIMEOUT' })),
      'UND_ERR_CONNECT_TIMEOUT',
      true,
    ],
    [
      'all addresses refused',
      fetchFailed(Object.assign(new AggregateError([refused, refused]), { code: 'ECONNREFUSED' })),
      'ECONNREFUSED',
      true,
    ],
    [
      'one address of two that was more than refused',
      fetchFailed(Object.assign(new AggregateError([refused, reset]), { code: 'ECONNREFUSED' })),
      'ECONNREFUSED',
      false,
    ],
    ['a client that wraps it once more', new Error('x', { cause: fetchFailed(refused) }), 'ECONNREFUSED', true],
    ['a reset connection', fetchFailed(reset), 'ECONNRESET', false],
    ['a connection that timed out', fetchFailed(system({ code: 'ETIMEDOUT', syscall: 'read' })), 'ETIMEDOUT', false],
    ['a code that may be of both', fetchFailed(system({ code: 'ECONNREFUSED' })), 'ECONNREFUSED', false],
    ['an answer that breaks off', fetchFailed(system({ code: 'UND_ERR_SOCKET' })), 'UND_ERR_SOCKET', false],
    ['a browser', new TypeError('Failed to fetch'), undefined, false],
    ['an abort', new DOMException('aborted', 'AbortError'), undefined, false],
    ['no error at all', 'refused', undefined, false],
    ['an empty one of many', fetchFailed(new AggregateError([])), undefined, false],
  ])('[CLIENT-UNSENT] %s', (_title, error, causeCode, wasUnsent) => {
    expect(readFailure(error)).toEqual({ causeCode, wasUnsent });
  });

  it('[CLIENT-UNSENT] whose causes go in a circle is read to an end', () => {
    const circle: { code: string; cause?: unknown } = { code: 'X' };
    circle.cause = circle;
    expect(readFailure(circle)).toEqual({ causeCode: 'X', wasUnsent: false });
  });
});
