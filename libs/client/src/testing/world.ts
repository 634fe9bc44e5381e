/** What one faulty server holds: sessions, what was asked and sent, and whether its fault still waits. */
import type { Dialect, FaultName } from './fault-table.ts';
import type { FaultySession } from './faulty-session.ts';
import type { Numbers } from './numbering.ts';
import type { ScriptedStream } from './scripted-stream.ts';
import type { ByteForm } from './sse-connection.ts';

export interface LoggedRequest {
  /** Since the server started. */
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  /** `impostor`: the other origin of `redirect-other-origin`. */
  readonly origin: 'server' | 'impostor';
  readonly sessionId: string | undefined;
  readonly lastEventId: string | undefined;
  /** Of the JSON-RPC message in the body. */
  readonly rpcMethod: string | undefined;
  /** Of the answer; 0 while there is none. */
  status: number;
  /** Whether the answer was the misbehaviour. */
  isFault: boolean;
}

export interface SentEvent {
  readonly atMs: number;
  /** `r<N>` or `s<N>`. */
  readonly stream: string;
  readonly id: string;
  readonly data: string;
}

/** When the fault comes: after so many messages on the stream. */
export interface FaultMoment {
  readonly stream: 'request' | 'standalone';
  readonly after: number;
}

export interface World {
  readonly dialect: Dialect;
  readonly fault: FaultName | null;
  readonly moment: FaultMoment;
  readonly retryMs: number;
  readonly keepAliveMs: number;
  readonly form: ByteForm;
  /** Whether answers carry `X-MCP-Replay-Epoch`. */
  readonly hasEpoch: boolean;
  readonly numbers: Numbers;
  readonly sessions: Map<string, FaultySession>;
  readonly requests: LoggedRequest[];
  readonly sent: SentEvent[];
  /** Names of the tools that were run, in order. */
  readonly runs: string[];
  /** Where the impostor listens; empty without it. */
  impostorUrl: string;
  /** The stream on which the fault happened; `null` before its moment. */
  hit: { readonly session: FaultySession; readonly stream: ScriptedStream } | null;
  /** How often the misbehaviour was shown. */
  shown: number;
  /** When it was last shown; `null` before. */
  shownAtMs: number | null;
  /** The token that every client has is no longer taken. */
  isTokenExpired: boolean;
  now(): number;
  readonly stopping: AbortSignal;
}

/** Notes that the misbehaviour is shown now. */
export function noteShown(world: World): void {
  world.shown++;
  world.shownAtMs = world.now();
}
