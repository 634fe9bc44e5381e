import { fuzz, FUZZ_DEADLINE_MS, mutations } from '@throughline/testkit/fuzz';
import { expect, it } from 'vitest';
import { RefusedError } from './answer-error.ts';
import { parseClientBody } from './client-body.ts';

const VALID = [
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,{"y":"z"}]},"_meta":{"progressToken":"t"}}}',
  '{"jsonrpc":"2.0","id":"a","result":{"content":[]}}',
  '{\r\n "jsonrpc": "2.0",\n "method": "notifications/cancelled", "params": {"requestId": 1}}',
  '[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","method":"n","params":{"a":"],[{\\"}"}}]',
  '{"jsonrpc":"2.0","id":2,"method":"m","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}',
];

it(
  '[GW-BODY] any bytes are messages or a refusal, and the text of each message is that message, on one line',
  () => {
    const tried = fuzz('bodies', mutations(VALID), (body) => {
      try {
        const { messages, texts } = parseClientBody(body);
        expect(texts.map((text) => JSON.parse(Buffer.from(text).toString()) as unknown)).toEqual(
          messages.map(({ message }) => message),
        );
        for (const text of texts) expect(Buffer.from(text).toString()).not.toMatch(/[\r\n]/);
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error;
        expect(['MALFORMED_JSON', 'INVALID_REQUEST', 'ERA_UNSUPPORTED']).toContain(error.refusal.code);
      }
    });
    expect(tried).toBeGreaterThan(0);
  },
  FUZZ_DEADLINE_MS,
);
