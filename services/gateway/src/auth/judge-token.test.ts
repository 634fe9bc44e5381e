import { describe, expect, it } from 'vitest';
import { hasTokenInQuery, judgeToken, readBearer } from './judge-token.ts';
import type { TokenRules, VerifiedToken } from './judge-token.ts';

const TOKEN: VerifiedToken = {
  issuer: 'https://id.example.com',
  subject: 'alice',
  audience: ['https://mcp.example.com/mcp/demo'],
  scopes: ['mcp', 'email'],
  expiresAtMs: 100_000,
};
const RULES: TokenRules = {
  audience: ['https://mcp.example.com', 'https://mcp.example.com/mcp/demo'],
  requiredScopes: ['mcp'],
  clockToleranceMs: 5000,
};
const ALICE = {
  ok: true,
  caller: { principal: '["https://id.example.com","alice"]', untilMs: 105_000 },
};
const no = (refusal: string): object => ({ ok: false, refusal });

describe('a verified token', () => {
  it.each<[string, Partial<VerifiedToken>, Partial<TokenRules>, number, object]>([
    ['is good', {}, {}, 50_000, ALICE],
    ['is good to the last moment of the tolerance', {}, {}, 104_999, ALICE],
    ['has expired', {}, {}, 105_000, no('expired')],
    ['has expired without a tolerance', {}, { clockToleranceMs: 0 }, 100_000, no('expired')],
    ['is for the gateway as a whole, a slash behind it', { audience: ['https://mcp.example.com/'] }, {}, 0, ALICE],
    ['is for us among others', { audience: ['https://a.example', 'https://mcp.example.com'] }, {}, 0, ALICE],
    ['is for another server', { audience: ['https://mcp.example.com/mcp/other'] }, {}, 0, no('audience')],
    ['is for a path that begins like ours', { audience: ['https://mcp.example.com/mcp/dem'] }, {}, 0, no('audience')],
    ['is for nobody', { audience: [] }, {}, 0, no('audience')],
    ['lacks a scope', { scopes: ['email'] }, {}, 0, no('scope')],
    ['has a scope that begins like ours', { scopes: ['mcp.read'] }, {}, 0, no('scope')],
    ['lacks one of two scopes', {}, { requiredScopes: ['mcp', 'admin'] }, 0, no('scope')],
    ['needs no scope', { scopes: [] }, { requiredScopes: [] }, 0, ALICE],
    ['is foreign before it is poor', { audience: [], scopes: [] }, {}, 0, no('audience')],
  ])('[AUTH-AUDIENCE] [AUTH-SCOPE] [AUTH-TIME] %s', (_, token, rules, nowMs, verdict) => {
    expect(judgeToken({ ...TOKEN, ...token }, { ...RULES, ...rules }, nowMs)).toEqual(verdict);
  });

  it('[AUTH-PRINCIPAL] the principal is issuer and subject, which no other pair and no name of a token file gives', () => {
    const principalOf = (issuer: string, subject: string): string | null => {
      const verdict = judgeToken({ ...TOKEN, issuer, subject }, RULES, 0);
      return verdict.ok ? verdict.caller.principal : null;
    };
    expect(principalOf('https://a', 'b')).toBe('["https://a","b"]');
    expect(principalOf('https://a","b', 'c')).not.toBe(principalOf('https://a', 'b","c'));
    // Names of a token file hold no colon.
    expect(principalOf('https://a', 'b')).toContain(':');
  });
});

describe('the Authorization header', () => {
  it.each([
    ['Bearer tok-alice', 'tok-alice'],
    ['bearer   tok-bob', 'tok-bob'],
    ['Bearer a.b-c_d~e+f/g==', 'a.b-c_d~e+f/g=='],
    [undefined, null],
    ['', null],
    ['Basic dG9rLWFsaWNl', null],
    ['tok-alice', null],
    ['Bearer', null],
    ['Bearer a b', null],
    ['Bearer a,b', null],
    ['Bearer "a"', null],
  ])('[GW-AUTH] %j holds the token %j', (header, token) => {
    expect(readBearer(header)).toBe(token);
  });
});

describe('the URL', () => {
  it.each([
    ['/mcp', false],
    ['/mcp?access_token=x', true],
    ['/mcp?a=1&access_token=', true],
    ['/mcp?access%5Ftoken=x', true],
    ['/mcp?my_access_token=x', false],
    ['/access_token=x', false],
  ])('[AUTH-QUERY] %s carries a token: %j', (url, carries) => {
    expect(hasTokenInQuery(url)).toBe(carries);
  });
});
