/**
 * The promises, stated over what a run left behind. Each finding names the promise that was broken, and where. Pure.
 * SPEC: SIM-*.
 */
import { Evidence } from './evidence.ts';
import { CallJudge } from './judge-calls.ts';
import { ExchangeJudge } from './judge-exchanges.ts';
import { HistoryJudge } from './judge-history.ts';
import { ProducedJudge } from './judge-produced.ts';
import type { RunRecords } from './records-of-run.ts';

export interface Finding {
  /** The promise: an id of SPEC.md. */
  readonly rule: string;
  readonly what: string;
}

/** What a process says, rightly, of a log whose history broke. */
const LOUD = ['the history of the log broke', 'a compacted topic was made anew, or lost its end'];

export function check(records: RunRecords): readonly Finding[] {
  const findings: Finding[] = [];
  const find = (rule: string, what: string): void => {
    findings.push({ rule, what });
  };
  const evidence = new Evidence(records, find);
  const exchanges = new ExchangeJudge(evidence);
  const calls = new CallJudge(evidence);
  const history = new HistoryJudge(evidence);
  for (const exchange of records.exchanges) exchanges.exchange(exchange);
  for (const call of records.calls) calls.call(call);
  calls.runs();
  calls.requests();
  for (const session of records.sessions) calls.session(session);
  history.breaks();
  history.linear();
  new ProducedJudge(evidence).produced();
  for (const { session, gateway, status } of records.gone)
    if (status !== 404 && !evidence.isEndForgotten(session))
      find('SIM-GONE', `session ${session} is over, but ${gateway} answers ${status}`);
  const isEvicting = evidence.evictsEvents || records.faults.includes('inbound-retention');
  const isBroken = (records.breaks ?? []).length > 0;
  for (const bug of records.bugs) {
    // That retention was faster than a worker that stood still is told loudly, and rightly so; a broken history as well.
    const isDue =
      (isEvicting && bug.includes('were evicted before they were')) ||
      (isBroken && LOUD.some((words) => bug.includes(words)));
    if (!isDue) find('SIM-NO-BUGS', bug);
  }
  return findings;
}
