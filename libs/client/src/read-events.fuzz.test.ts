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
const MAX_CHARS = 2000;

async function read(pieces: readonly Buffer[]): Promise<{ readonly items: SseItem[]; readonly end: unknown }> {
  const items: SseItem[] = [];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) if (piece.length > 0) controller.enqueue(piece);
      controller.close();
    },
  });
  const options = { silenceMs: () => 20_000, maxEventChars: MAX_CHARS, signal: new AbortController().signal };
  const end = await readEvents(body, (item) => items.push(item) > 0, options).catch((error: unknown) =>
    error instanceof Error && 'code' in error ? error.code : error,
  );
  return { items, end };
}

it(
  '[CLIENT-SSE] any bytes, cut at any places, give the same events as in one piece, and an end or a refusal',
  async () => {
    const input = fc.record({ bytes: mutations(VALID), cuts: fc.array(fc.nat(500), { maxLength: 8 }) });
    const tried = await fuzzAsync('SSE of the client', input, async ({ bytes, cuts }) => {
      const whole = await read([bytes]);
      const cut = await read(cutAt(bytes, cuts));
      expect(['ended', 'NOT_MCP']).toContain(whole.end);
      expect(whole.items.every((item) => item.kind !== 'event' || item.data.length <= MAX_CHARS)).toBe(true);
      expect(cut).toEqual(whole);
    });
    expect(tried).toBeGreaterThan(0);
  },
  FUZZ_DEADLINE_MS,
);
