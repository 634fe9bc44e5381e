/** A client that minds its own business beside hostile ones: one session with an open stream, which must not notice them. */
import { decodeText } from '@throughline/protocol';
import { keyOf, result } from './backend.ts';
import { call } from './core-rig.ts';
import type { HttpRig } from './http-rig.ts';
import { messagesOf } from './sse-reading.ts';

export interface Witness {
  readonly session: string;
  /**
   * Says one message on its stream, has one call answered and one notification taken; throws unless each comes once, in
   * order and unaltered, and nothing else came since the last time.
   */
  unharmed(): Promise<void>;
  close(): Promise<void>;
}

const PATIENCE_MS = 20_000;
const WORD = { jsonrpc: '2.0', method: 'word' };

export async function openWitness(rig: HttpRig): Promise<Witness> {
  const session = await rig.open();
  const own = { 'mcp-session-id': session };
  const gone = new AbortController();
  const stream = await fetch(rig.url, { headers: { accept: 'text/event-stream', ...own }, signal: gone.signal });
  if (stream.status !== 200 || stream.body === null) throw new Error(`the witness has no stream: ${stream.status}`);
  const reader = stream.body.pipeThrough(new TextDecoderStream()).getReader();
  let [text, said] = ['', 0];

  const heard = async (): Promise<readonly unknown[]> => {
    for (;;) {
      const messages = messagesOf(text);
      if (messages.length >= said) {
        if (messages.some(({ cursor }, index) => cursor.seq !== index + 1)) throw new Error('numbers are not in order');
        return messages.map(({ data }) => JSON.parse(data) as unknown);
      }
      const read = await Promise.race([reader.read(), late()]);
      if (read.done) throw new Error(`the stream of the witness ended after ${messages.length} of ${said} messages`);
      text += read.value;
    }
  };

  return {
    session,
    async unharmed() {
      said++;
      await rig.backend.say(session, 's', { ...WORD, params: { said } });
      const expected = Array.from({ length: said }, (_, at) => ({ ...WORD, params: { said: at + 1 } }));
      const got = await heard();
      if (JSON.stringify(got) !== JSON.stringify(expected)) throw new Error(`it heard ${JSON.stringify(got)}`);
      const note = { jsonrpc: '2.0', method: 'note', params: { said } };
      const taken = await rig.post(note, own);
      if (taken.status !== 202) throw new Error(`its notification got ${taken.status}`);
      const answer = await rig.post(call(said, 'tools/call', { said }), own);
      if (answer.status !== 200) throw new Error(`its call got ${answer.status}: ${await answer.text()}`);
      const { key } = keyOf(session);
      const record = (await rig.backend.inbound()).findLast((inbound) => inbound.key === key);
      const asked = decodeText(record?.record.value ?? new Uint8Array());
      if (asked !== JSON.stringify(call(said, 'tools/call', { said }))) throw new Error(`the log holds ${asked}`);
      const at = record?.offset ?? 0;
      await rig.backend.say(session, { kind: 'request', at }, result(said, { said }), { end: true });
      const words = messagesOf(await answer.text());
      if (words.length !== 1 || words[0]?.data !== JSON.stringify(result(said, { said })))
        throw new Error(`its call was answered ${JSON.stringify(words)}`);
    },
    async close() {
      gone.abort();
      await reader.cancel().catch(() => undefined);
    },
  };
}

function late(): Promise<never> {
  return new Promise((_resolve, reject) => {
    setTimeout(() => reject(new Error(`the witness heard nothing for ${PATIENCE_MS} ms`)), PATIENCE_MS).unref();
  });
}
