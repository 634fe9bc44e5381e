/** Says one message on a stream, honestly. */
import { setTimeout as pause } from 'node:timers/promises';
import type { JsonRpcMessage } from '@throughline/protocol';
import type { ScriptedStream } from './scripted-stream.ts';
import { deliver } from './sse-answer.ts';
import type { World } from './world.ts';

/** Adds a message to a stream, and sends it if a connection has the stream. */
export function say(world: World, stream: ScriptedStream, message: JsonRpcMessage): void {
  const event = stream.add(message);
  if (stream.connection !== null) deliver(world, stream, stream.connection, [event]);
}

const LISTENER_DEADLINE_MS = 5000;
const POLL_MS = 5;

/** Resolves when a connection has the stream, or after 5 s without one. */
export async function waitForListener(world: World, stream: ScriptedStream): Promise<void> {
  const until = world.now() + LISTENER_DEADLINE_MS;
  while (stream.connection === null && world.now() < until && !world.stopping.aborted) await pause(POLL_MS);
}
