import { cutAt, fuzzAsync, FUZZ_DEADLINE_MS, mutations } from '@throughline/testkit/fuzz';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readEvents } from './read-events.ts';
import type { SseItem } from './read-events.ts';

const VALID = [
  'id: k7q2fabcde.17.104857600.r99812.0.aA1W2m8TEV5qZLsWhNALsA\nretry: 500\ndata: \n\n',
  'event: message\nid: 1\ndata: {"jsonrpc":"2.0","method":"m"}\n\nid: 2\ndata: {"a":\ndata: 1}\n\n',
  ': keepalive\n\nid: a\r\ndata: ä\r\n\r\nid\n\ndata\n\n',
  '\uFEFFdata: x\n\nevent: other\nid: 3\ndata: y\n\nretry: x\n\nunknown: z\n\n',
];
/** More than any input: what is bounded is an event without an end, which depends on how it is cut. */
const ENOUGH = 1_000_000;
const FEW = 100;

async function read(
  pieces: readonly Buffer[],
  maxEventChars = ENOUGH,
): Promise<{ readonly items: SseItem[]; readonly end: unknown }> {
  const items: SseItem[] = [];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) if (piece.length > 0) controller.enqueue(piece);
      controller.close();
    },
  });
  const options = { silenceMs: () => 20_000, maxEventChars, signal: new AbortController().signal };
  const end = await readEvents(body, (item) => items.push(item) > 0, options).catch((error: unknown) =>
    error instanceof Error && 'code' in error ? error.code : error,
  );
  return { items, end };
}

interface Input {
  readonly bytes: Buffer;
  readonly cuts: readonly number[];
}

/** Inputs that once broke something. */
const FINDS: readonly Input[] = [
  // A comment that a lone CR ends, and behind it what is no UTF-8: it was handed over only if it came in a piece of its own.
  { bytes: Buffer.from(': a\r\xc0\xafb\n\n', 'latin1'), cuts: [4] },
];

it(
  '[CLIENT-SSE] any bytes, cut at any places, give the same events as in one piece, and an end or a refusal',
  async () => {
    const input = fc.record({ bytes: mutations(VALID), cuts: fc.array(fc.nat(500), { maxLength: 8 }) });
    const check = async ({ bytes, cuts }: Input): Promise<void> => {
      const whole = await read([bytes]);
      expect(['ended', 'NOT_MCP']).toContain(whole.end);
      expect(await read(cutAt(bytes, cuts))).toEqual(whole);
      expect(['ended', 'NOT_MCP']).toContain((await read(cutAt(bytes, cuts), FEW)).end);
    };
    expect(await fuzzAsync('SSE of the client', input, check, { finds: FINDS })).toBeGreaterThan(0);
  },
  FUZZ_DEADLINE_MS,
);
