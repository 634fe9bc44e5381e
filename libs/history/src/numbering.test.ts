import { createHash } from 'node:crypto';
import { encodeText, requestStream, standaloneStream } from '@throughline/protocol';
import { describe, expect, it } from 'vitest';
import { nextNumbering, startNumbering } from './numbering.ts';

const sha = (...parts: (string | Uint8Array)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest().subarray(0, 8);
};

describe('numbering', () => {
  it('[RES-SEQ] messages of a stream are 1, 2, 3, and the chain is SHA-256 over the chain before and the payload', () => {
    let numbering = startNumbering('session', standaloneStream(12));
    const start = sha('session\ns12\nchain');
    expect(numbering.seq).toBe(0);
    expect(Buffer.from(numbering.chain)).toEqual(start);
    numbering = nextNumbering(numbering, encodeText('{"a":1}'));
    const first = sha(start, '{"a":1}');
    expect(numbering.seq).toBe(1);
    expect(Buffer.from(numbering.chain)).toEqual(first);
    numbering = nextNumbering(numbering, encodeText('ü'));
    expect(numbering.seq).toBe(2);
    expect(Buffer.from(numbering.chain)).toEqual(sha(first, 'ü'));
  });

  it('[RES-SEQ] the same payloads on another stream or session give another chain', () => {
    const chain = (session: string, at: number) =>
      Buffer.from(nextNumbering(startNumbering(session, requestStream(at)), encodeText('{}')).chain).toString('hex');
    expect(new Set([chain('a', 1), chain('a', 2), chain('b', 1)]).size).toBe(3);
  });

  it('[RES-SEQ] a numbering is a value: going on twice from one place gives the same and changes nothing', () => {
    const from = startNumbering('a', requestStream(1));
    const before = Buffer.from(from.chain).toString('hex');
    const [left, right] = [nextNumbering(from, encodeText('x')), nextNumbering(from, encodeText('x'))];
    expect(left).toEqual(right);
    expect(Buffer.from(from.chain).toString('hex')).toBe(before);
  });
});
