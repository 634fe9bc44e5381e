/** What happens to the session, as lines for whoever looks after it. SPEC: CONNECT-TELLS. */
import { TransportError } from '@throughline/client';
import type { LostSession, OrphanAnswer, RestoredSession, UnprovenNotice } from '@throughline/client';

export function describeLost({ rejection, failedCalls, cancelledRequests }: LostSession): string {
  const ran = failedCalls.filter(({ mayHaveRun }) => mayHaveRun).length;
  return [
    `the session is over: ${rejection.message}`,
    `${count(failedCalls.length, 'call')} failed, ${ran} of which may have run`,
    `${count(cancelledRequests.length, 'request')} of the server cancelled`,
  ].join('; ');
}

/** @param before what the client was told of the server. */
export function describeRestored(
  { initializeResult, notRestored }: RestoredSession,
  before: Readonly<Record<string, unknown>> | null,
): string[] {
  const lines = ['a new session was begun'];
  for (const { method, uri, message } of notRestored)
    lines.push(`${method}${uri === undefined ? '' : ` of ${uri}`} could not be made again: ${message}`);
  if (before !== null && JSON.stringify(before['capabilities']) !== JSON.stringify(initializeResult['capabilities']))
    lines.push('the server offers other capabilities than before; restart the client to use them');
  return lines;
}

export function describeOrphan({ method, response }: OrphanAnswer): string {
  const what = response.error === undefined ? 'with a result' : `with error ${response.error.code}`;
  return `a call that a former process made (${method}) has ended ${what}; nobody waits for it any more`;
}

export function describeUnproven({ stream, facts }: UnprovenNotice): string {
  const which = stream === 'standalone' ? 'the standalone stream' : 'the stream of a call';
  return `${which} goes on, but this server does not prove ${facts.join(', ')}`;
}

/** With what the system said of it. */
export function describeError(error: Error): string {
  // Its message says it.
  if (error instanceof TransportError && error.causeCode !== undefined) return error.message;
  const causes: string[] = [];
  for (let cause: unknown = error.cause; cause instanceof Error && causes.length < 3; cause = cause.cause)
    causes.push((cause as NodeJS.ErrnoException).code ?? cause.message);
  return causes.length === 0 ? error.message : `${error.message} (${causes.join(': ')})`;
}

/** What differs from one attempt to the next. */
export function describeRetry(error: Error): string {
  if (!(error instanceof TransportError) || error.retry === undefined) return '';
  const { attempt, inMs } = error.retry;
  return `; attempt ${attempt}, the next in ${(inMs / 1000).toFixed(1)} s`;
}

/** What can be done about a session that does not begin; `null`: nothing here. */
export function describeFix(code: unknown): string | null {
  return code === 'UNREACHABLE' ? 'check the URL, and that the server runs and can be reached from here' : null;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}
