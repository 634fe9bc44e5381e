/** Misbehaviours on a stream that is open. */
import { setTimeout as pause } from 'node:timers/promises';
import { FAULT_TABLE } from './fault-table.ts';
import type { FaultName } from './fault-table.ts';
import type { Misbehaviour, Scene } from './misbehaviour.ts';
import { say, waitForListener } from './say.ts';
import { textResult } from './script-words.ts';
import { noteSent } from './sse-answer.ts';
import { eventText } from './sse-text.ts';
import { APART_MS, READ_MS } from './timing.ts';

type StreamLie = Extract<Misbehaviour, { place: 'stream' }>;

export const STREAM_LIES = {
  'cut-utf8': { place: 'stream', say: (scene) => sayInParts(scene, (bytes) => cutAt(bytes, bytes.indexOf('漢') + 1)) },
  'truncated-utf8': {
    place: 'stream',
    async say(scene) {
      // What came before has been read: it is not its bytes that are bad.
      await pause(READ_MS);
      await sayInParts(scene, (bytes) => {
        const lost = bytes.indexOf('漢') + 2;
        return [Buffer.concat([bytes.subarray(0, lost), bytes.subarray(lost + 1)])];
      });
    },
  },
  crlf: {
    place: 'stream',
    form: { isCrlf: true },
    say: (scene) => sayInParts(scene, (bytes) => cutAt(bytes, bytes.indexOf('\r') + 1)),
  },
  bom: { place: 'stream', form: { hasBom: true }, say: ({ world, stream, message }) => say(world, stream, message) },
  'no-final-newline': {
    place: 'stream',
    moment: 'last',
    async say(scene) {
      await sayInParts(scene, (bytes) => [bytes.subarray(0, -2)]);
      scene.stream.detach()?.end();
    },
  },
  'retry-directive': {
    place: 'stream',
    say({ stream, connection, message }) {
      connection.text(`retry: ${FAULT_TABLE['retry-directive'].asksWaitMs}\n\n`);
      stream.detach()?.end();
      stream.add(message);
    },
  },
  'silent-stream': {
    place: 'stream',
    say({ stream, message }) {
      stream.detach()?.mute();
      stream.add(message);
    },
  },
  'answer-on-wrong-stream': {
    place: 'stream',
    async say({ world, session, stream, message }) {
      const standalone = session.standalone();
      await waitForListener(world, standalone);
      say(world, standalone, textResult(stream.requestId ?? 0, 'a result on the wrong stream'));
      // The true result must not be there before the false one.
      await pause(READ_MS);
      say(world, stream, message);
    },
  },
} as const satisfies Partial<Record<FaultName, StreamLie>>;

/** Says the message in the pieces that `cut` makes of its bytes. */
async function sayInParts(
  { world, stream, connection, message }: Scene,
  cut: (bytes: Buffer) => readonly Buffer[],
): Promise<void> {
  const event = stream.add(message);
  noteSent(world, stream.name, event);
  for (const [index, part] of cut(connection.encode(eventText(event.id, event.data))).entries()) {
    if (index > 0) await pause(APART_MS);
    connection.bytes(part);
  }
}

function cutAt(bytes: Buffer, at: number): readonly Buffer[] {
  return [bytes.subarray(0, at), bytes.subarray(at)];
}
