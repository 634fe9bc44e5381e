import { systemClock } from '@throughline/log';
import { cutAt, fuzz, fuzzAsync, FUZZ_DEADLINE_MS, mutations } from '@throughline/testkit/fuzz';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLineFramer } from './line-framer.ts';
import { readSse } from './sse-reader.ts';
import type { SseCursor } from './sse-reader.ts';

const cuts = fc.array(fc.nat(1000), { maxLength: 8 });

describe('what servers say', () => {
  it(
    '[HOST-STDIO-UTF8] [HOST-STDIO-LINE-BOUND] any bytes of a child, cut at any places, are its lines up to the first that is too long',
    () => {
      const valid = [
        '{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","method":"ä"}\r\n',
        'x'.repeat(70),
        '\n\n\r\n',
      ];
      const most = 64;
      const tried = fuzz('lines of a child', fc.record({ bytes: mutations(valid), cuts }), (input) => {
        const framer = createLineFramer(most);
        const got: string[] = [];
        let isTooLong = false;
        for (const piece of cutAt(input.bytes, input.cuts)) {
          const { lines, tooLong } = framer.push(piece);
          got.push(...lines.map((line) => line.toString('latin1')));
          isTooLong = tooLong;
          if (tooLong) break;
        }
        const all = input.bytes.toString('latin1').split('\n');
        const long = all.findIndex((line) => line.length > most);
        expect(isTooLong).toBe(long >= 0);
        expect(got).toEqual((long >= 0 ? all.slice(0, long) : all.slice(0, -1)).map((line) => line.replace(/\r$/, '')));
      });
      expect(tried).toBeGreaterThan(0);
    },
    FUZZ_DEADLINE_MS,
  );

  it(
    '[HOST-UPSTREAM-SDK] any bytes of an upstream, cut at any places, give the same data and cursor as in one piece',
    async () => {
      const valid = [
        'id: 1\nretry: 100\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
        ': ping\n\nevent: message\nid: 2\r\ndata: a\r\ndata: ü\r\n\r\nid: 3\n\n',
      ];
      const read = async (pieces: readonly Buffer[], maxChars: number): Promise<unknown> => {
        const data: string[] = [];
        const cursor: SseCursor = { lastEventId: undefined, retryMs: undefined };
        const body = new ReadableStream<Uint8Array>({
          start(controller) {
            for (const piece of pieces) if (piece.length > 0) controller.enqueue(piece);
            controller.close();
          },
        });
        const end = await readSse(body, cursor, {
          maxChars,
          silence: { clock: systemClock, ms: 20_000 },
          signal: new AbortController().signal,
          onData: async (text) => void data.push(text),
          onId: () => undefined,
        });
        return { data, cursor, end };
      };
      const input = fc.record({ bytes: mutations(valid), cuts });
      const tried = await fuzzAsync('SSE of an upstream', input, async ({ bytes, cuts: at }) => {
        const pieces = cutAt(bytes, at);
        // What is bounded is an event without an end: which are too long depends on how they are cut.
        const whole = await read([bytes], 1_000_000);
        expect(whole).toMatchObject({ end: 'ended' });
        expect(await read(pieces, 1_000_000)).toEqual(whole);
        expect(await read(pieces, 100)).toMatchObject({ end: expect.stringMatching(/^(ended|too-long)$/) as string });
      });
      expect(tried).toBeGreaterThan(0);
    },
    FUZZ_DEADLINE_MS,
  );
});
