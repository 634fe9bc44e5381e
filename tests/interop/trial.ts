/** One client in the run: its wire, its session, and the call that is under way. */
import { waitUntil } from '@throughline/testkit/processes';
import type { InteropClient, InteropSession } from './interop-client.ts';
import { connectionsOfCall, stepsOn } from './read-wire.ts';
import { startWire } from './wire.ts';
import type { Wire, WireAnswer } from './wire.ts';

export type Outcome =
  | { readonly kind: 'result'; readonly text: string; readonly ms: number }
  | { readonly kind: 'error'; readonly error: unknown; readonly ms: number }
  /** Neither, until the deadline. */
  | { readonly kind: 'nothing'; readonly ms: number };

export interface Call {
  /** Steps as the client reported them. */
  readonly reported: readonly number[];
  readonly outcome: Promise<Outcome>;
  isOver(): boolean;
  /** What the wire carried since it began. */
  answers(): readonly WireAnswer[];
}

export interface Trial extends AsyncDisposable {
  readonly client: InteropClient;
  readonly wire: Wire;
  /** A new session; a former one is left. */
  connect(): Promise<void>;
  /** Settles by `deadlineMs` at the latest, whatever the client does. */
  call(tool: string, args: Readonly<Record<string, unknown>>, deadlineMs: number): Call;
  /** Resolves when the call that is under way has come to this step on the wire, or is over; without steps, to an id. */
  reach(call: Call, step: number): Promise<void>;
}

const REACH_MS = 90_000;

export async function startTrial(client: InteropClient, url: string): Promise<Trial> {
  const wire = await startWire(url);
  let session: InteropSession | undefined;
  return {
    client,
    wire,
    async connect() {
      await session?.[Symbol.asyncDispose]();
      session = await client.connect(wire.url);
    },
    call(tool, args, deadlineMs) {
      if (session === undefined) throw new Error(`${client.name} is not connected`);
      const reported: number[] = [];
      const from = wire.answers.length;
      const started = performance.now();
      let isOver = false;
      const called = session
        .callTool(tool, args, (step) => reported.push(step))
        .then(
          (text): Outcome => ({ kind: 'result', text, ms: performance.now() - started }),
          (error: unknown): Outcome => ({ kind: 'error', error, ms: performance.now() - started }),
        );
      const outcome = Promise.race([called, after(deadlineMs)]);
      void outcome.then(() => {
        isOver = true;
      });
      return { reported, outcome, isOver: () => isOver, answers: () => wire.answers.slice(from) };
    },
    async reach(call, step) {
      const isThere = (): boolean => {
        const connections = connectionsOfCall(call.answers());
        if (client.reportsProgress) return call.isOver() || (stepsOn(connections).at(-1) ?? 0) >= step;
        return call.isOver() || connections.some(({ items }) => items.some(({ id }) => id !== undefined));
      };
      await waitUntil(`step ${step} of ${client.name}`, isThere, REACH_MS);
    },
    async [Symbol.asyncDispose]() {
      await session?.[Symbol.asyncDispose]();
      await wire[Symbol.asyncDispose]();
    },
  };
}

function after(ms: number): Promise<Outcome> {
  return new Promise((resolve) => {
    setTimeout(() => {
      resolve({ kind: 'nothing', ms });
    }, ms).unref();
  });
}
