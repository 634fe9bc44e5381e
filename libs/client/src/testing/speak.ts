/** Says a script on a stream, honestly but for the moment of the fault. */
import type { JsonRpcMessage } from '@throughline/protocol';
import type { FaultySession } from './faulty-session.ts';
import { misbehaviourOf } from './misbehaviours.ts';
import { say } from './say.ts';
import type { ScriptedStream } from './scripted-stream.ts';
import { noteShown } from './world.ts';
import type { World } from './world.ts';

export async function speak(
  world: World,
  session: FaultySession,
  stream: ScriptedStream,
  messages: readonly JsonRpcMessage[],
): Promise<void> {
  const lie = misbehaviourOf(world.fault);
  const isTarget = world.hit === null && stream.label.kind === world.moment.stream;
  for (const [index, message] of messages.entries()) {
    const { connection } = stream;
    if (lie === null || lie.place === 'post' || !isTarget || connection === null) {
      say(world, stream, message);
      continue;
    }
    const isMoment = lie.moment === 'last' ? index === messages.length - 1 : index === world.moment.after;
    if (!isMoment) {
      say(world, stream, message);
      continue;
    }
    world.hit = { session, stream };
    if (lie.place === 'stream') noteShown(world);
    await lie.say({ world, session, stream, connection, message });
  }
}
