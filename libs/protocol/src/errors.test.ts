import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ERROR_TABLE, resumptionError, RESUMPTION_REASONS, wireError } from './errors.ts';
import { SESSION_END_REASONS } from './session-record.ts';
import type { ErrorCode, ResumptionReason } from './errors.ts';

const CODES: readonly (readonly [code: string, http: number, jsonRpc: number, retry: string])[] = [
  ['MALFORMED_JSON', 400, -32700, 'never'],
  ['INVALID_REQUEST', 400, -32600, 'never'],
  ['SESSION_REQUIRED', 400, -32000, 'never'],
  ['SESSION_NOT_FOUND', 404, -32001, 'reinitialize'],
  ['VERSION_UNSUPPORTED', 400, -32000, 'never'],
  ['ERA_UNSUPPORTED', 400, -32022, 'never'],
  ['UNAUTHORIZED', 401, -32000, 'never'],
  ['INSUFFICIENT_SCOPE', 403, -32000, 'never'],
  ['ORIGIN_REFUSED', 403, -32000, 'never'],
  ['HOST_REFUSED', 403, -32000, 'never'],
  ['PATH_NOT_FOUND', 404, -32000, 'never'],
  ['METHOD_NOT_ALLOWED', 405, -32000, 'never'],
  ['NOT_ACCEPTABLE', 406, -32000, 'never'],
  ['BODY_TOO_LARGE', 413, -32000, 'never'],
  ['UNSUPPORTED_MEDIA_TYPE', 415, -32000, 'never'],
  ['RATE_LIMITED', 429, -32000, 'after-backoff'],
  ['AUTH_UNAVAILABLE', 503, -32000, 'after-backoff'],
  ['NO_OWNER', 503, -32000, 'after-backoff'],
  ['CAPACITY', 503, -32000, 'after-backoff'],
  ['DRAINING', 503, -32000, 'after-backoff'],
  ['LOG_UNAVAILABLE', 503, -32000, 'after-backoff'],
  ['APPEND_UNKNOWN', 504, -32000, 'application'],
  ['INTERNAL', 500, -32603, 'application'],
  ['CURSOR_MALFORMED', 400, -32000, 'never'],
  ['CURSOR_FOREIGN', 400, -32000, 'never'],
  ['EPOCH_MISMATCH', 404, -32000, 'reinitialize'],
  ['GAP', 404, -32000, 'reinitialize'],
  ['BEYOND_END', 404, -32000, 'reinitialize'],
  ['DIVERGED', 404, -32000, 'reinitialize'],
  ['SESSION_ENDED', 404, -32000, 'reinitialize'],
  ['OWNER_LOST', 200, -32000, 'application'],
  ['RESULT_TOO_LARGE', 200, -32603, 'never'],
  ['ID_REUSED', 200, -32600, 'never'],
  ['SERVER_FAILED', 200, -32603, 'application'],
  ['CAPABILITY_UNDECLARED', 200, -32601, 'never'],
  ['CAPABILITY_LIMITED', 200, -32602, 'never'],
];

const REASONS: readonly (readonly [reason: ResumptionReason, code: string, action: string])[] = [
  ['cursor-malformed', 'CURSOR_MALFORMED', 'correct-cursor'],
  ['cursor-foreign', 'CURSOR_FOREIGN', 'correct-cursor'],
  ['epoch-mismatch', 'EPOCH_MISMATCH', 'reinitialize'],
  ['gap', 'GAP', 'reinitialize'],
  ['beyond-end', 'BEYOND_END', 'reinitialize'],
  ['diverged', 'DIVERGED', 'reinitialize'],
  ['session-ended', 'SESSION_ENDED', 'reinitialize'],
];

/** Rows of the tables of the page, by the heading of the first column. */
function documented(heading: string): string[][] {
  const page = readFileSync(new URL('../../../docs/reference/errors.md', import.meta.url), 'utf8');
  const cells = (row: string): string[] => row.split('|').slice(1, -1).map((cell) => cell.trim()); // prettier-ignore
  const tables = page.split('\n\n').map((block) => block.trim().split('\n').map(cells));
  return tables.find((table) => table[0]?.[0] === heading)?.slice(2) ?? [];
}

describe('the error table', () => {
  it('[ERR-TABLE] holds exactly these codes, with HTTP status, JSON-RPC code and advice', () => {
    const table = Object.entries(ERROR_TABLE).map(([code, row]) => [code, row.http, row.jsonRpc, row.retry]);
    expect(table.toSorted()).toEqual(CODES.toSorted());
  });

  it('[ERR-TABLE] is what the reference page says, each row once, with when and what', () => {
    const rows = documented('code');
    expect(rows.map(([code, http, jsonRpc, retry]) => [code, Number(http), Number(jsonRpc), retry]).toSorted()).toEqual(
      CODES.toSorted(),
    );
    for (const [code, , , , when, what, ...others] of rows) {
      expect(when, code).toMatch(/^.{10,}$/);
      expect(what, code).toMatch(/^[A-Z].*\.$/);
      expect(others).toEqual([]);
    }
  });

  it('[ERR-RESUME] the reasons of a refused resume are exactly these, in the table and on the page', () => {
    expect(Object.entries(RESUMPTION_REASONS).toSorted()).toEqual(
      REASONS.map(([reason, code]) => [reason, code]).toSorted(),
    );
    expect(documented('reason').toSorted()).toEqual(REASONS.map((row) => [...row]).toSorted());
  });

  it('[REC-VALUES] the reasons why a session ended are on the page, each with its meaning', () => {
    const rows = documented('ended because');
    expect(rows.map(([reason]) => reason)).toEqual([...SESSION_END_REASONS]);
    for (const [reason, meaning] of rows) expect(meaning, reason).toMatch(/^[A-Z].*\.$/);
  });
});

describe('error objects', () => {
  it.each(CODES)(
    '[ERR-DATA] %s carries its code and advice, which no further data replaces',
    (code, _, jsonRpc, retry) => {
      const error = wireError(code as ErrorCode, 'text', { code: 'X', retry: 'Y', limit: 5 });
      expect(error).toEqual({ code: jsonRpc, message: 'text', data: { code, retry, limit: 5 } });
      expect(wireError(code as ErrorCode, 'text').data).toEqual({ code, retry });
    },
  );

  it.each(REASONS)(
    '[ERR-RESUME] %s is told with its type, reason, action and what was asked',
    (reason, code, action) => {
      const error = resumptionError({ reason, requested: 'k7q2fabcde.1' });
      expect(error.code).toBe(-32000);
      expect(error.message).toMatch(/^Resumption rejected: .{10,}$/);
      expect(error.data).toEqual({
        code,
        retry: action === 'reinitialize' ? 'reinitialize' : 'never',
        type: 'ResumptionRejected',
        reason,
        action,
        requested: 'k7q2fabcde.1',
        ...(action === 'reinitialize' ? { mayHaveRun: true } : {}),
      });
    },
  );

  it('[ERR-RESUME] tells what is held, and cuts what was asked to 160 characters', () => {
    const available = { epoch: 'k7q2fabcde', start: 5, end: 9 };
    const error = resumptionError({ reason: 'gap', requested: 'x'.repeat(100_000), available });
    expect(error.data).toMatchObject({ available, requested: 'x'.repeat(160) });
  });
});
