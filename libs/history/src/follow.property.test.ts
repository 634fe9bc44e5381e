/** Random sessions with several connections a stream: who follows, and who gets what. */
import { formatStreamLabel, requestStream, STANDALONE, standaloneStream } from '@throughline/protocol';
import type { EventRecord, RecordInput, StreamLabel } from '@throughline/protocol';
import { attached, closed, eventAt, sent } from '@throughline/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { beginsAtSessionStart, foldStandalone, follow, NO_STANDALONE_HISTORY, startFollowing } from './follow.ts';

interface Connection {
  readonly stream: StreamLabel;
  readonly attachment: string | null;
  /** Where it begins to read. */
  readonly from: number;
}

interface Outcome {
  readonly delivered: readonly number[];
  /** How it ended; `following` if it did not. */
  readonly end: string;
}

/** Runs a connection to its end, or to the end of the log. */
function run(log: readonly EventRecord[], { stream, attachment, from }: Connection): Outcome {
  let state = startFollowing(stream, attachment);
  const delivered: number[] = [];
  for (const event of log.slice(from)) {
    const [next, step] = follow(state, event);
    state = next;
    if (step.do === 'deliver') delivered.push(event.offset);
    if (step.do === 'deliver' ? step.end : step.do !== 'skip' && step.do !== 'live') return { delivered, end: step.do };
  }
  return { delivered, end: 'following' };
}

const action = fc.oneof(
  { weight: 4, arbitrary: fc.constant(['message'] as const) },
  { weight: 3, arbitrary: fc.constant(['request message'] as const) },
  { weight: 2, arbitrary: fc.constant(['attach'] as const) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('resume' as const), fc.nat(), fc.nat()) },
  { weight: 1, arbitrary: fc.constant(['close'] as const) },
);
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

const REQUEST = requestStream(0);

/** Plays one session: a request stream that a POST opened, plain GETs, and resumes from places that clients were told. */
function play(actions: readonly Action[]): { log: EventRecord[]; connections: Connection[]; atStart: Set<string> } {
  const log: EventRecord[] = [];
  const connections: Connection[] = [{ stream: REQUEST, attachment: null, from: 0 }];
  const atStart = new Set<string>();
  const append = (input: RecordInput): number => {
    log.push(eventAt(input, log.length));
    return log.length - 1;
  };
  let names = 0;
  for (const [what, which, place] of actions) {
    if (what === 'message') append(sent('k', STANDALONE, `{"n":${log.length}}`));
    else if (what === 'request message') append(sent('k', REQUEST, `{"n":${log.length}}`));
    else if (what === 'close') append(closed('k', STANDALONE));
    else if (what === 'attach') {
      const attachment = `c${names++}`;
      const isAtStart = beginsAtSessionStart(log.reduce(foldStandalone, NO_STANDALONE_HISTORY));
      const at = append(attached('k', STANDALONE, attachment));
      const stream = standaloneStream(at);
      if (isAtStart) atStart.add(formatStreamLabel(stream));
      connections.push({ stream, attachment, from: isAtStart ? 0 : at });
    } else {
      const former = connections[(which ?? 0) % connections.length];
      if (former === undefined) continue;
      // An id it was sent. Without any it could not resume.
      const told = run(log, former).delivered;
      const anchor = told[(place ?? 0) % Math.max(1, told.length)];
      if (anchor === undefined) continue;
      const attachment = `c${names++}`;
      append(attached('k', former.stream, attachment));
      connections.push({ stream: former.stream, attachment, from: anchor + 1 });
    }
  }
  return { log, connections, atStart };
}

const histories = fc.array(action, { minLength: 5, maxLength: 60 });

/** Milliseconds that a property may take on a machine busy with other things. */
const SLOW_MS = 60_000;

describe('connections of one session', () => {
  it(
    '[RES-NEWEST] of all connections on a stream at most one still follows at the end of the log, the newest',
    { timeout: SLOW_MS },
    () => {
      let superseded = 0;
      fc.assert(
        fc.property(histories, (actions) => {
          const { log, connections } = play(actions);
          const following = new Map<string, number[]>();
          connections.forEach((connection, index) => {
            const { end } = run(log, connection);
            if (end === 'superseded') superseded++;
            // All standalone streams of a session count as one: a message goes to one of them.
            const name = connection.stream.kind === 'standalone' ? 's' : formatStreamLabel(connection.stream);
            if (end === 'following') following.set(name, [...(following.get(name) ?? []), index]);
          });
          for (const [name, indexes] of following) {
            expect(indexes).toHaveLength(1);
            const newest = connections.findLastIndex(({ stream }) =>
              name === 's' ? stream.kind === 'standalone' : formatStreamLabel(stream) === name,
            );
            if (name !== 's') expect(indexes).toEqual([newest]);
          }
        }),
        { numRuns: 1500 },
      );
      expect(superseded).toBeGreaterThan(500);
    },
  );

  it(
    '[RES-ONCE] a standalone message goes to one standalone stream, and to one more only if that began at the start of the session',
    { timeout: SLOW_MS },
    () => {
      let secondChances = 0;
      fc.assert(
        fc.property(histories, (actions) => {
          const { log, connections, atStart } = play(actions.filter(([what]) => what !== 'close'));
          const streams = new Map<string, Set<number>>();
          for (const connection of connections) {
            if (connection.stream.kind !== 'standalone') continue;
            const name = formatStreamLabel(connection.stream);
            const got = streams.get(name) ?? new Set();
            // Never attached, so never superseded: all that the connections of the stream get together.
            for (const offset of run(log, { ...connection, attachment: 'nobody' }).delivered) got.add(offset);
            streams.set(name, got);
          }
          for (const { offset, body } of log) {
            if (body.type !== 'message' || body.stream !== STANDALONE) continue;
            const names = [...streams].filter(([, got]) => got.has(offset)).map(([name]) => name);
            if (streams.size > 0) expect(names.length).toBeGreaterThan(0);
            expect(names.length).toBeLessThanOrEqual(2);
            if (names.length === 2) {
              secondChances++;
              expect(names.some((name) => atStart.has(name) && Number(name.slice(1)) > offset)).toBe(true);
            }
          }
        }),
        { numRuns: 1500 },
      );
      expect(secondChances).toBeGreaterThan(100);
    },
  );

  it(
    '[RES-ONCE] a resumed connection gets exactly what its stream holds behind the anchor',
    { timeout: SLOW_MS },
    () => {
      fc.assert(
        fc.property(histories, (actions) => {
          const { log, connections } = play(actions.filter(([what]) => what !== 'close'));
          for (const connection of connections) {
            const { stream, from } = connection;
            const over = log.find(
              ({ body, offset }) =>
                stream.kind === 'standalone' &&
                body.type === 'attached' &&
                body.stream === STANDALONE &&
                offset > stream.at,
            );
            const { delivered, end } = run(log, connection);
            const wanted = log
              .filter(({ body, offset }) => {
                if (body.type !== 'message' || offset < from || offset >= (over?.offset ?? Infinity)) return false;
                return stream.kind === 'standalone' ? body.stream === STANDALONE : body.stream !== STANDALONE;
              })
              .map(({ offset }) => offset);
            if (end === 'superseded') expect(delivered).toEqual(wanted.slice(0, delivered.length));
            else expect(delivered).toEqual(wanted);
          }
        }),
        { numRuns: 1500 },
      );
    },
  );
});
