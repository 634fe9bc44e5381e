import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLineFramer } from './line-framer.ts';

describe('createLineFramer', () => {
  it('[HOST-STDIO-UTF8] gives back every line whatever the cuts, also inside a character', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.string({ unit: 'binary', maxLength: 20 }).filter((line) => !/[\r\n]/.test(line)),
          { maxLength: 10 },
        ),
        fc.array(fc.nat(200), { maxLength: 20 }),
        (lines, cuts) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''), 'utf8');
          const framer = createLineFramer(1000);
          const at = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
          const out: string[] = [];
          let from = 0;
          for (const to of [...at, bytes.length]) {
            const framed = framer.push(bytes.subarray(from, to));
            expect(framed.tooLong).toBe(false);
            out.push(...framed.lines.map((line) => line.toString('utf8')));
            from = to;
          }
          expect(out).toEqual(lines.map((line) => Buffer.from(line, 'utf8').toString('utf8')));
        },
      ),
    );
  });

  it('drops the carriage return of a line end', () => {
    expect(createLineFramer(100).push(Buffer.from('a\r\nb\n')).lines.map(String)).toEqual(['a', 'b']);
  });

  it('[HOST-STDIO-LINE-BOUND] tells a line over the bound, after the lines before it, in one chunk or in many', () => {
    const one = createLineFramer(4).push(Buffer.from('ab\nabcde\n'));
    expect(one.lines.map(String)).toEqual(['ab']);
    expect(one.tooLong).toBe(true);
    const many = createLineFramer(4);
    expect(many.push(Buffer.from('abcd')).tooLong).toBe(false);
    expect(many.push(Buffer.from('e')).tooLong).toBe(true);
  });
});
