import { describe, expect, it } from 'vitest';
import { parseBrokers, toKafkajsSasl, toTlsOptions } from './options.ts';

describe('options', () => {
  it('[KAFKA-OPTIONS] brokers are host:port, IPv6 in brackets; anything else is told before a connection is tried', () => {
    expect(parseBrokers(['a.example:9092', '127.0.0.1:19092', '[::1]:9093'])).toEqual([
      { host: 'a.example', port: 9092 },
      { host: '127.0.0.1', port: 19_092 },
      { host: '::1', port: 9093 },
    ]);
    for (const text of ['', 'a', 'a:', ':9092', 'a:0', 'a:70000', 'a:b', 'kafka://a:9092', '::1:9092'])
      expect(() => parseBrokers([text]), text).toThrow(TypeError);
    expect(() => parseBrokers([])).toThrow(TypeError);
  });

  it('[KAFKA-OPTIONS] TLS and the SASL mechanisms PLAIN, SCRAM and OAUTHBEARER are passed on as kafkajs takes them', () => {
    expect(toTlsOptions(undefined)).toBeNull();
    expect(toTlsOptions(false)).toBeNull();
    expect(toTlsOptions(true)).toEqual({});
    expect(toTlsOptions({ ca: 'x', servername: 'y' })).toEqual({ ca: 'x', servername: 'y' });
    expect(toKafkajsSasl(undefined)).toBeNull();
    for (const mechanism of ['plain', 'scram-sha-256', 'scram-sha-512'] as const) {
      const sasl = { mechanism, username: 'u', password: 'p' };
      expect(toKafkajsSasl(sasl)).toEqual(sasl);
      expect(toKafkajsSasl(sasl)).not.toBe(sasl);
    }
    const bearer = toKafkajsSasl({ mechanism: 'oauthbearer', token: () => Promise.resolve('t') });
    expect(bearer).toEqual({ mechanism: 'oauthbearer', authenticationProvider: expect.any(Function) as unknown });
  });
});
