import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readLines } from './read-lines.ts';

async function linesOf(chunks: readonly Uint8Array[], maxBytes = 1000): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of readLines(Readable.from(chunks, { objectMode: true }), maxBytes))
    lines.push(line.kind === 'line' ? line.text : '<too long>');
  return lines;
}

describe('readLines', () => {
  it('[CONNECT-STDIN] lines come whole, however their bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme', maxLength: 20 })),
        fc.infiniteStream(fc.nat(9)),
        async (raw, cuts) => {
          const lines = raw.map((line) => line.replace(/[\r\n]/g, ' '));
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
          const chunks: Uint8Array[] = [];
          for (let at = 0; at < bytes.length;) {
            const length = 1 + (cuts.next().value as number);
            chunks.push(bytes.subarray(at, at + length));
            at += length;
          }
          expect(await linesOf(chunks)).toEqual(lines);
        },
      ),
    );
  });

  it('[CONNECT-STDIN] CRLF ends a line, and so does the end of the input', async () => {
    expect(await linesOf([Buffer.from('a\r\nb\n\nc')])).toEqual(['a', 'b', '', 'c']);
    expect(await linesOf([])).toEqual([]);
  });

  it('[CONNECT-STDIN] of a line above the bound nothing is kept, and the next one is read', async () => {
    const chunks = [Buffer.from('12345'), Buffer.from('6789'), Buffer.from('0\n12345\n123456'), Buffer.from('\nz')];
    expect(await linesOf(chunks, 5)).toEqual(['<too long>', '12345', '<too long>', 'z']);
  });
});
