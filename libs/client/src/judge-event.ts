/**
 * Whether an event goes on where its stream stopped: the decision procedure for a stream after a reconnect, and for
 * every event after it. Pure and total. SPEC: CLIENT-JUDGE, CLIENT-CONSECUTIVE, CLIENT-OPAQUE, CLIENT-POLICY.
 */
import { eventDigest } from './event-digest.ts';
import { eventNumber } from './event-number.ts';
import { judgeChained } from './judge-chained.ts';
import { MAX_RECENT } from './stream-checkpoint.ts';
import type { StreamCheckpoint } from './stream-checkpoint.ts';
import { reject } from './verdict.ts';
import type { EventVerdict, Fact, Numbering, ReceivedEvent } from './verdict.ts';

/** What the answer that brings the events has shown. */
export interface ConnectionFacts {
  /** Whether it continues a stream; on a new one nothing is to be proved. */
  readonly isResumed: boolean;
  /** What is proved by the head of the answer. */
  readonly proved: readonly Fact[];
}

/**
 * `strict`: a resumed stream is only taken where session, epoch and sequence are proved. `compatible`: it is taken where
 * nothing speaks against it.
 */
export type ResumptionPolicy = 'strict' | 'compatible';

const CONDITIONS: readonly Fact[] = ['session', 'epoch', 'sequence'];

export function judgeEvent(
  checkpoint: StreamCheckpoint,
  event: ReceivedEvent,
  numbering: Numbering,
  connection: ConnectionFacts,
  policy: ResumptionPolicy,
): EventVerdict {
  const verdict = judgeNumbered(checkpoint, event, numbering, connection);
  if (verdict.do !== 'deliver' || policy === 'compatible') return verdict;
  const missing = verdict.unproven.filter((fact) => CONDITIONS.includes(fact));
  return missing.length === 0
    ? verdict
    : reject('unproven', `the server proves nothing about ${missing.join(', ')} when it resumes a stream`);
}

function judgeNumbered(
  checkpoint: StreamCheckpoint,
  event: ReceivedEvent,
  numbering: Numbering,
  connection: ConnectionFacts,
): EventVerdict {
  switch (numbering) {
    case 'chained':
      return judgeChained(checkpoint, event);
    case 'consecutive':
      return judgeConsecutive(checkpoint, event, connection);
    case 'opaque':
      return judgeOpaque(checkpoint, event, connection);
  }
}

function judgeConsecutive(
  checkpoint: StreamCheckpoint,
  { id, data }: ReceivedEvent,
  connection: ConnectionFacts,
): EventVerdict {
  const number = id === null ? null : eventNumber(id);
  if (id === null || number === null)
    return reject('malformed-id', `an event came with the id ${JSON.stringify(id)} where ids are consecutive numbers`);
  const last = checkpoint.seq;
  const moved = { ...checkpoint, lastEventId: id, seq: number };
  // The client's own cursor, repeated to it: it holds no event.
  if (data === '' && number === last) return { do: 'advance', next: moved };
  if (last !== null && number > last + 1) return reject('gap', `event ${last + 1} was expected and ${number} came`);
  const digest = eventDigest(id, data);
  if (last !== null && number <= last) {
    if (number < last) return reject('replay-reset', `event ${number} came again after ${last}`);
    if (checkpoint.last?.id === id && checkpoint.last.digest === digest) return { do: 'drop' };
    return reject('diverged', `event ${number} came again with other content`);
  }
  if (data === '') return { do: 'advance', next: moved };
  const next = { ...moved, last: { id, digest } };
  return { do: 'deliver', next, unproven: without(connection, 'sequence') };
}

function judgeOpaque(
  checkpoint: StreamCheckpoint,
  { id, data }: ReceivedEvent,
  connection: ConnectionFacts,
): EventVerdict {
  if (id === null) return { do: 'deliver', next: checkpoint, unproven: without(connection) };
  if (data === '') return { do: 'advance', next: { ...checkpoint, lastEventId: id } };
  const digest = eventDigest(id, data);
  const { last, recent } = checkpoint;
  if (last?.id === id) {
    return last.digest === digest
      ? { do: 'drop' }
      : reject('diverged', `event ${JSON.stringify(id)} came again with other content`);
  }
  if (recent.some((event) => event.id === id))
    return reject('replay-reset', `event ${JSON.stringify(id)} came again after ${JSON.stringify(last?.id)}`);
  const next: StreamCheckpoint = {
    ...checkpoint,
    lastEventId: id,
    last: { id, digest },
    recent: last === null ? recent : [...recent, last].slice(-MAX_RECENT),
  };
  return { do: 'deliver', next, unproven: without(connection) };
}

/** What is not proved of a resumed stream whose content has no chain. */
function without({ isResumed, proved }: ConnectionFacts, ...also: readonly Fact[]): Fact[] {
  if (!isResumed) return [];
  const facts: Fact[] = ['session', 'epoch', 'sequence', 'content'];
  return facts.filter((fact) => !proved.includes(fact) && !also.includes(fact));
}
