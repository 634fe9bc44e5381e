/** What a row of the table does, as code. */
import type { ServerResponse } from 'node:http';
import type { JsonRpcMessage } from '@throughline/protocol';
import type { FaultySession } from './faulty-session.ts';
import type { ScriptedStream } from './scripted-stream.ts';
import type { Resume } from './sse-answer.ts';
import type { ByteForm, SseConnection } from './sse-connection.ts';
import type { World } from './world.ts';

/** The moment: a client is connected, and this message would be next. */
export interface Scene {
  readonly world: World;
  readonly session: FaultySession;
  readonly stream: ScriptedStream;
  readonly connection: SseConnection;
  readonly message: JsonRpcMessage;
}

export type Misbehaviour =
  | {
      readonly place: 'stream';
      readonly form?: Partial<ByteForm>;
      /** `last`: at the last message of the script, whatever the moment. */
      readonly moment?: 'last';
      /** Does it, and adds the message to the stream. */
      say(scene: Scene): void | Promise<void>;
    }
  | {
      readonly place: 'resume';
      readonly moment?: undefined;
      /** How many resumes of the stream are answered so; later ones honestly. */
      readonly times: number;
      /** Ends the connection, and adds the message to the stream. */
      say(scene: Scene): void | Promise<void>;
      resume(world: World, resume: Resume): void;
    }
  | {
      readonly place: 'post';
      readonly times: number;
      /** Whether the call runs all the same. */
      readonly doesRun: boolean;
      post(world: World, session: FaultySession, response: ServerResponse): void;
    };
