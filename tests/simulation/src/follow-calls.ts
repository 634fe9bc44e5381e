/** A POST with calls from its beginning to the end of the last of them, over as many connections as that takes. */
import { sleep } from '@throughline/log';
import type { Chance } from './chance.ts';
import { drawCursor } from './client-choices.ts';
import type { ClientInbox } from './client-inbox.ts';
import type { ClientSession } from './client-session.ts';
import { BACKOFF_MS } from './client-wire.ts';
import type { ClientWire, SimClientOptions } from './client-wire.ts';
import type { CallOutcome, CallRecord } from './records-of-run.ts';
import type { SseEvent } from './sse-parser.ts';

export interface FollowDeps {
  readonly options: SimClientOptions;
  readonly wire: ClientWire;
  readonly inbox: ClientInbox;
}

/** Posts the calls, which are one body, and resumes their stream until each has ended. */
export async function followCalls(
  { options, wire, inbox }: FollowDeps,
  session: ClientSession,
  { calls, body }: { readonly calls: readonly CallRecord[]; readonly body: string },
  chance: Chance,
): Promise<void> {
  const { clock, planned } = options;
  const asks = calls.map((call) => call.requestId);
  const isDone = (): boolean => calls.every((call) => call.outcome !== null);
  const end = (outcome: CallOutcome): void => {
    for (const call of calls) inbox.end(call, outcome);
  };
  const lost = (how: string): void => {
    inbox.lose(session, how);
    end({ kind: 'session-lost' });
  };
  let cursor: string | null = null;
  const onEvent = (event: SseEvent): boolean => {
    if (event.hasId) cursor = event.id;
    inbox.receive(session, event);
    inbox.endUnnamed(calls, event.data);
    // Clients differ: some read on to the end of the stream, some leave with the answer.
    return !isDone() || chance.happens(0.5);
  };
  const glance = (event: SseEvent): boolean => {
    inbox.receive(session, event);
    return true;
  };
  let isPosted = false;
  while (!isDone()) {
    if (session.over.signal.aborted) {
      end({ kind: 'session-lost' });
      return;
    }
    if (!isPosted || cursor === null) {
      const fetched = await wire.post(session, session.record.server, body, asks, chance, { onEvent });
      if (isDone()) return;
      if (fetched.status === 404) return lost('POST of a call: 404');
      if (fetched.status === 200) isPosted = true;
      else if (fetched.status === 503 || fetched.end === 'refused') {
        await sleep(clock, BACKOFF_MS * chance.between(0.5, 1.5));
        continue;
      } else if (fetched.status !== null && fetched.status !== 504) {
        end({ kind: 'error', code: `HTTP ${fetched.status}`, mayHaveRun: null, json: fetched.body });
        return;
      }
      if (cursor === null) {
        // Nobody knows whether it runs. The same request under the same id is safe; not every client does that.
        if (calls.length > 1 || !chance.happens(planned.postAgain)) {
          end({ kind: 'given-up', why: `POST: ${fetched.status} ${fetched.end}` });
          return;
        }
        isPosted = false;
      }
      await sleep(clock, fetched.retryMs ?? BACKOFF_MS);
      continue;
    }
    const from: string = drawCursor(session, cursor, planned.oddResume, chance);
    if (chance.happens(planned.oddResume)) void wire.get(session, from, chance, { onEvent: glance });
    const fetched = await wire.get(session, from, chance, { onEvent });
    if (isDone()) return;
    if (fetched.status === 404) return lost('GET of a call: 404');
    if (fetched.status === 204) {
      // The stream is over, and its answer was seen or never will be.
      if (calls.every((call) => call.cancelled)) end({ kind: 'cancelled' });
      else if (from === cursor)
        end({ kind: 'error', code: 'NO_ANSWER', mayHaveRun: null, json: 'the stream ended without an answer' });
    } else if (fetched.status === 400) end({ kind: 'error', code: 'HTTP 400', mayHaveRun: null, json: fetched.body });
    await sleep(clock, (fetched.retryMs ?? BACKOFF_MS) * chance.between(0.8, 1.2));
  }
}
