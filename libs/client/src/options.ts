/** What the user of a transport may set, with its defaults, checked once. SPEC: CLIENT-OPTIONS. */
import type { JsonRpcId, JsonRpcMessage, JsonRpcResponse } from '@throughline/protocol';
import type { CheckpointStore } from './checkpoint-store.ts';
import type { ResumptionRejected } from './client-errors.ts';
import type { ResumptionPolicy } from './judge-event.ts';
import type { Fact } from './verdict.ts';

/** What `new Headers` takes. */
export type HeadersLike = ConstructorParameters<typeof Headers>[0];

/** A session that is over, told after everything pending in it was failed. */
export interface LostSession {
  readonly rejection: ResumptionRejected;
  readonly sessionId: string | null;
  /** Calls of this client that were failed: each got an error with `mayHaveRun`. */
  readonly failedCalls: readonly { readonly id: JsonRpcId; readonly method: string; readonly mayHaveRun: boolean }[];
  /** Requests of the server that were open: each was cancelled, and an answer to it goes nowhere. */
  readonly cancelledRequests: readonly JsonRpcId[];
}

/** A session in place of a lost one. */
export interface RestoredSession {
  readonly sessionId: string | null;
  /** What the server answered to `initialize` this time. */
  readonly initializeResult: Readonly<Record<string, unknown>>;
  /** What was asked for again and refused: `logging/setLevel`, or `resources/subscribe` with the URI. */
  readonly notRestored: readonly { readonly method: string; readonly uri?: string; readonly message: string }[];
}

/** A message as it came, before it is handed over. */
export interface EventNotice {
  readonly stream: 'request' | 'standalone';
  readonly eventId: string | null;
  readonly message: JsonRpcMessage;
  /** Whether it was sent before this connection began; `null` where the server does not say. */
  readonly isReplayed: boolean | null;
}

export interface UnprovenNotice {
  readonly stream: 'request' | 'standalone';
  readonly eventId: string | null;
  readonly facts: readonly Fact[];
}

/** An answer to a call of a former process, whose caller is gone. */
export interface OrphanAnswer {
  readonly method: string;
  readonly response: JsonRpcResponse;
}

export interface ResumableTransportOptions {
  /** Makes one request a call: if it repeats any by itself, what a failure says of the last may not be so of the first. Default: the global one. */
  readonly fetch?: (url: string | URL, init?: RequestInit) => Promise<Response>;
  /** Sent with every request; a function is asked before each. */
  readonly headers?: HeadersLike | (() => HeadersLike | Promise<HeadersLike>);
  /**
   * Called on 401, and on 403 with `WWW-Authenticate`, with the headers that were sent. `true`: there are new
   * credentials, the request is sent once more. `false`: the answer stands. It rejects where that cannot be said now:
   * then the request is tried again until the deadline (`CREDENTIALS`). The request waits for it, however long it takes.
   * Default: the answer stands.
   */
  onUnauthorized?(answer: Response, sent: Headers): Promise<boolean>;
  /**
   * `strict`: a resumed stream is only taken where session, epoch and sequence are proved, otherwise the session is
   * begun anew. `compatible`: it is taken where nothing speaks against it, and `onUnproven` is told. Throughline proves
   * all of it. Default: `strict`.
   */
  readonly policy?: ResumptionPolicy;
  /**
   * What the ids of servers other than Throughline mean. `auto`: integers are consecutive if the server sends
   * `X-MCP-Replay-Epoch`; everything else is opaque. Default: `auto`.
   */
  readonly eventIds?: 'auto' | 'consecutive' | 'opaque';
  /**
   * `auto`: a lost session is begun anew by the same `initialize`, and subscriptions are made again. `manual`: the
   * transport waits for `reinitialize()`. Default: `auto`.
   */
  readonly reinitialize?: 'auto' | 'manual';
  /** Keeps the place across processes. Default: none. */
  readonly store?: CheckpointStore;
  /** Under which name. Default: the URL. */
  readonly storeKey?: string;
  /** Milliseconds before the first attempt to reconnect; doubles with each. Default: 500. */
  readonly initialDelayMs?: number;
  /** Milliseconds between attempts at most, unless the server asks for more (60 s at most). Default: 10,000. */
  readonly maxDelayMs?: number;
  /** Milliseconds for which the server may be out of reach before a call fails. Default: 120,000. */
  readonly giveUpMs?: number;
  /** Milliseconds until the head of an answer. Default: 30,000. */
  readonly connectTimeoutMs?: number;
  /** Milliseconds of silence on an open stream of a server that sends keepalives. Default: 45,000. */
  readonly silenceMs?: number;
  /** The same for a server that was never seen to send any; and for polling without an event. Default: 300,000. */
  readonly quietMs?: number;
  /** Characters of one event. Default: 16 Mi. */
  readonly maxEventChars?: number;
  /** Between 0 and 1. Default: `Math.random`. */
  random?(): number;
  onSessionLost?(lost: LostSession): void;
  onSessionRestored?(restored: RestoredSession): void;
  onUnproven?(notice: UnprovenNotice): void;
  onEvent?(notice: EventNotice): void;
  onOrphanAnswer?(answer: OrphanAnswer): void;
}

const TIMES = {
  initialDelayMs: 500,
  maxDelayMs: 10_000,
  giveUpMs: 120_000,
  connectTimeoutMs: 30_000,
  silenceMs: 45_000,
  quietMs: 300_000,
  maxEventChars: 16 * 1024 * 1024,
} as const;

type Times = { readonly [Name in keyof typeof TIMES]: number };

export interface Settings extends Times {
  readonly url: URL;
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  readonly policy: ResumptionPolicy;
  readonly eventIds: 'auto' | 'consecutive' | 'opaque';
  readonly reinitialize: 'auto' | 'manual';
  readonly storeKey: string;
  readonly random: () => number;
  readonly user: ResumableTransportOptions;
}

const CHOICES = {
  policy: ['strict', 'compatible'],
  eventIds: ['auto', 'consecutive', 'opaque'],
  reinitialize: ['auto', 'manual'],
} as const;

/** Throws a `TypeError` that names the option and the fix. */
export function readOptions(url: string | URL, user: ResumableTransportOptions): Settings {
  const target = new URL(url);
  for (const name of Object.keys(CHOICES) as (keyof typeof CHOICES)[]) {
    const value = user[name];
    if (value !== undefined && !(CHOICES[name] as readonly string[]).includes(value))
      throw new TypeError(`option ${name} must be one of ${CHOICES[name].join(', ')}`);
  }
  const times = { ...TIMES } as { -readonly [Name in keyof Times]: number };
  for (const name of Object.keys(TIMES) as (keyof Times)[]) {
    const value = user[name] ?? TIMES[name];
    // A timer of the platform holds 2^31 - 1 ms at most and fires at once above.
    if (!Number.isFinite(value) || value <= 0 || value > 2 ** 31 - 1)
      throw new TypeError(`option ${name} must be a number above 0 and below 2147483648`);
    times[name] = value;
  }
  return {
    ...times,
    url: target,
    fetch: user.fetch ?? ((input, init) => fetch(input, init)),
    policy: user.policy ?? 'strict',
    eventIds: user.eventIds ?? 'auto',
    reinitialize: user.reinitialize ?? 'auto',
    storeKey: user.storeKey ?? target.href,
    random: user.random ?? (() => Math.random()),
    user,
  };
}
