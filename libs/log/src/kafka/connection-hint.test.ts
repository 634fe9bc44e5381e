import { describe, expect, it } from 'vitest';
import { connectionHint } from './connection-hint.ts';

const failure = (code?: string): Error => Object.assign(new Error('x'), code === undefined ? {} : { code });
const sasl = { mechanism: 'plain', username: 'u', password: 'p' } as const;

describe('connectionHint', () => {
  it.each([
    ['SELF_SIGNED_CERT_IN_CHAIN', /the CA that signed/],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', /the CA that signed/],
    ['CERT_HAS_EXPIRED', /has expired/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /another name/],
    ['ERR_SSL_WRONG_VERSION_NUMBER', /does not speak TLS/],
    ['ENOTFOUND', /advertised\.listeners/],
    ['ECONNREFUSED', /advertised\.listeners/],
    ['EMFILE', /^$/],
  ])('[KAFKA-HINT] %s says what to check', (code, hint) => {
    expect(connectionHint(failure(code), {})).toMatch(hint);
  });

  it('[KAFKA-HINT] at an address that the user gave nothing is said of what brokers tell', () => {
    expect(connectionHint(failure('ECONNREFUSED'), {}, true)).toBe(
      '; nothing listens there: check that the broker runs, and the port',
    );
    expect(connectionHint(failure('ENOTFOUND'), {}, true)).toMatch(/check how the broker is called/);
  });

  it('[KAFKA-HINT] a connection that is closed without a word: what the listener may want is what is not spoken', () => {
    const closed = failure();
    expect(connectionHint(closed, {})).toBe('; the listener may want TLS or SASL');
    expect(connectionHint(closed, { sasl })).toBe('; the listener may want TLS');
    expect(connectionHint(closed, { ssl: true })).toBe('; the listener may want SASL, or a certificate of the client');
    expect(connectionHint(closed, { ssl: true, sasl })).toBe('');
  });
});
