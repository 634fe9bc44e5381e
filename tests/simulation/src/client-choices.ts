/** What a simulated client leaves to chance: what it calls with, and from where it resumes. The order of draws is part of a seed. */
import type { Chance } from './chance.ts';
import { cursorsBeside, idKey } from './client-session.ts';
import type { ClientSession } from './client-session.ts';
import type { SimClientOptions } from './client-wire.ts';
import type { CallRecord } from './records-of-run.ts';

/** Request ids of a client's own, apart from those of its steps. */
export const FIRST_OWN_ID = 9_000_000;

/** A call that is not made yet, in the records of the run and of its session. */
export function drawCall(
  { name, clock, records }: SimClientOptions,
  session: ClientSession,
  { tool, number }: { readonly tool: string; readonly number: string },
  chance: Chance,
): CallRecord {
  const call: CallRecord = {
    token: `${name}-${number}`,
    tool,
    session: session.record.id,
    requestId: chance.happens(0.5)
      ? Number(number.replace('p-', String(FIRST_OWN_ID / 10)).replace('-', '0'))
      : `${name}-${number}`,
    startedMs: clock.monoMs(),
    cancelled: false,
    endedMs: null,
    outcome: null,
    answers: [],
  };
  records.calls.push(call);
  session.calls.set(idKey(call.requestId), call);
  return call;
}

/** `echo`: its tool answers at once. */
export function drawBody(call: CallRecord, chance: Chance, options: { readonly echo?: boolean }): object {
  if (call.tool === 'list' || call.tool === 'ping')
    return { jsonrpc: '2.0', id: call.requestId, method: call.tool === 'list' ? 'tools/list' : 'ping' };
  return {
    jsonrpc: '2.0',
    id: call.requestId,
    method: 'tools/call',
    params: {
      name: call.tool,
      arguments: {
        token: call.token,
        steps: chance.whole(1, 6),
        intervalMs: options.echo === true ? 0 : chance.happens(0.1) ? chance.between(200, 800) : chance.between(0, 60),
        ...(chance.happens(0.1) ? { pad: 'x'.repeat(chance.whole(100, 3000)) } : {}),
      },
      _meta: { progressToken: call.token },
    },
  };
}

/** Now and then a cursor from before: everything behind it comes again, the same. */
export function drawCursor(session: ClientSession, cursor: string, oddResume: number, chance: Chance): string {
  if (!chance.happens(oddResume)) return cursor;
  const known = cursorsBeside(session, cursor);
  return known.length === 0 ? cursor : chance.pick(known).id;
}
