/**
 * Builds that are broken on purpose, one a kind of promise: the simulation must catch each. A new promise brings its
 * mutant. An edit that does not apply any more is a fault of this file.
 */
import type { FaultName } from './faults.ts';
import type { PlanOptions } from './draw-plan.ts';

export interface Mutant {
  readonly name: string;
  readonly breaks: string;
  readonly edits: readonly { readonly file: string; readonly from: string; readonly to: string }[];
  /** Faults that bring it to light; else those of the seed. */
  readonly faults?: readonly FaultName[];
  /** A seed known to catch it: tried first. Whoever changes what seeds draw runs `mutants.ts`, which prints another. */
  readonly seed?: number;
  /** Replaces what the seed would draw. */
  readonly overrides?: PlanOptions['overrides'];
  /** A test file that catches it instead: seeds bring it to light too rarely. */
  readonly test?: string;
}

const SMALL_CACHE = { cacheBytes: 1024, catchUpReaders: 2, keepAliveMs: 200, refreshMs: 300, drainMs: 200 };

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'clamped-cursor',
    seed: 10,
    breaks: 'a cursor below what is held goes on at what is held',
    faults: ['retention', 'connection-cut', 'gateway-crash'],
    edits: [
      {
        file: 'libs/tail/src/catch-up-reads.ts',
        from: "if (start !== undefined && from < start) return { kind: 'gap', start, end: end ?? start };",
        to: 'if (start !== undefined && from < start) return await this.#readOnce(start, signal);',
      },
      {
        file: 'libs/history/src/resumption.ts',
        from: 'finding.record.offset !== cursor.offset || anchorChecksum(finding.record) !== cursor.crc',
        to: 'finding.record.offset === cursor.offset && anchorChecksum(finding.record) !== cursor.crc',
      },
    ],
  },
  {
    name: 'no-claim-check',
    seed: 17,
    breaks: 'readers accept the records of every owner',
    faults: ['worker-pause', 'append-unknown', 'member-churn'],
    edits: [
      {
        file: 'libs/history/src/claims.ts',
        from: "return event.owner === null || event.owner === this.inForceAt(event.offset) ? 'accepted' : 'fenced';",
        to: "return 'accepted';",
      },
    ],
  },
  {
    name: 'claims-without-predecessor',
    breaks: 'the newest claim wins, whatever it names as its predecessor',
    test: 'libs/history/src/ownership-model.test.ts',
    edits: [
      {
        file: 'libs/history/src/claims.ts',
        from: 'if (body.epoch !== this.#epoch || body.predecessor !== inForce)',
        to: 'if (body.epoch !== this.#epoch)',
      },
    ],
  },
  {
    name: 'replay-then-register',
    seed: 11,
    breaks: 'the place from which a POST reads is taken after its append',
    edits: [
      {
        file: 'services/gateway/src/post.ts',
        from: '  const cursor = tail.cursor(session.id.key, after);\n  const [first] = await appendForClient(context, to, inboundRecords(context, incoming, after));',
        to: '  const [first] = await appendForClient(context, to, inboundRecords(context, incoming, after));\n  const cursor = tail.cursor(session.id.key, tail.position());',
      },
    ],
  },
  {
    name: 'rerun-without-limit',
    seed: 1,
    breaks: 'what was started is run again by each owner',
    faults: ['worker-crash', 'worker-pause', 'crash-at-append'],
    edits: [
      {
        file: 'libs/history/src/takeover.ts',
        from: "attempt === 0 || (effects !== 'unknown' && attempt < MAX_ATTEMPTS);",
        to: 'attempt >= 0;',
      },
    ],
  },
  {
    name: 'memory-is-ignored',
    breaks: 'a tool that is run again says and asks everything again',
    faults: ['worker-crash', 'worker-pause', 'crash-at-append'],
    edits: [
      {
        file: 'services/worker/src/consume/repeated-words.ts',
        from: "if (heard.do === 'send') return false;",
        to: 'return false;',
      },
    ],
  },
  {
    name: 'answers-are-not-fed',
    breaks: 'a tool that is run again waits for an answer that the client has given before',
    test: 'services/worker/src/worker-memory.test.ts',
    edits: [
      {
        file: 'libs/history/src/replay-memory.ts',
        from: 'asked.answer = answer;',
        to: 'asked.answer = null;',
      },
    ],
  },
  {
    name: 'questions-of-anybody-are-nobodys',
    breaks: 'what a stdio server asks while several calls run is not told to be theirs, so they ask it again',
    test: 'services/worker/src/worker-memory.test.ts',
    edits: [
      {
        file: 'services/worker/src/consume/server-messages.ts',
        from: 'const among = expecting === undefined && others.length > 1 ? others : [];',
        to: 'const among: readonly OpenCall[] = [];',
      },
    ],
  },
  {
    name: 'shares-of-what-waits-hold-nobody-up',
    breaks: 'servers of one principal put as much before the records of another as they like',
    test: 'services/worker/src/worker-fair.test.ts',
    edits: [
      {
        file: 'services/worker/src/settle/waiting-shares.ts',
        from: 'return principal.bytes > share && session',
        to: 'return principal.bytes > 64 * share && session',
      },
    ],
  },
  {
    name: 'dispatch-before-start-is-read-back',
    seed: 1,
    breaks: 'a call with effects runs before its start was read back accepted',
    faults: ['worker-pause', 'member-churn', 'append-unknown', 'slow-process'],
    edits: [
      {
        file: 'services/worker/src/consume/client-calls.ts',
        from: 'if (!(await isAccepted(this.#parts, await settler.started(call)))) return;',
        to: 'void settler.started(call);',
      },
    ],
  },
  {
    name: 'no-newest-attachment',
    seed: 1,
    breaks: 'a connection goes on when a newer one has its stream',
    faults: ['half-open', 'connection-cut'],
    edits: [
      {
        file: 'libs/history/src/follow.ts',
        from: "return [state, state.attached ? { do: 'superseded' } : SKIP];",
        to: 'return [state, SKIP];',
      },
    ],
  },
  {
    name: 'lazily-ended-session',
    seed: 11,
    breaks: 'a refused resume does not end its session',
    faults: ['retention', 'connection-cut', 'gateway-pause'],
    edits: [
      {
        file: 'services/gateway/src/refuse-resume.ts',
        from: "if (endsSession && checked.state === 'lives') await endSession(context, session, 'resumption-rejected');",
        to: 'void endsSession;\n  void endSession;',
      },
    ],
  },
  {
    name: 'checkpoint-without-queued',
    seed: 1,
    breaks: 'a checkpoint leaves out what was taken in and waits',
    faults: ['worker-crash', 'worker-stop'],
    edits: [
      {
        file: 'services/worker/src/consume/client-calls.ts',
        from: 'const calls = [...this.#open.values()].sort(',
        to: "const calls = [...this.#open.values()].filter(({ state }) => state !== 'queued' && state !== 'held').sort(",
      },
    ],
  },
  {
    name: 'tail-position-in-idle-ids',
    breaks: "an id without data names the tail's place, not this connection's own",
    test: 'libs/tail/src/partition-tail.test.ts',
    edits: [
      {
        file: 'libs/tail/src/partition-tail.ts',
        from: 'if (this.#waiter !== null || this.#position === this.#tail.position()) return this.#tail.last() ?? this.#passed;',
        to: 'return this.#tail.last() ?? this.#passed;',
      },
    ],
  },
  {
    name: 'idle-refresh-before-events',
    seed: 1,
    breaks: 'an idle connection that woke up is moved to the end of what was read',
    edits: [
      {
        file: 'libs/tail/src/partition-tail.ts',
        from: 'if (offset !== null) this.#position = Math.max(this.#position, offset);',
        to: 'if (offset !== null) this.#position = Math.max(this.#position, this.#tail.position());',
      },
    ],
  },
  {
    name: 'catch-up-beyond-the-tail',
    breaks: 'catch-up judges records that the claims do not reach yet',
    test: 'libs/tail/src/partition-tail.test.ts',
    edits: [
      {
        file: 'libs/tail/src/catch-up-reads.ts',
        from: 'const limit = folded();',
        to: 'const limit = Number.MAX_SAFE_INTEGER;',
      },
    ],
  },
  {
    name: 'no-session-filter',
    seed: 1,
    breaks: 'catch-up delivers the records of all sessions',
    faults: ['connection-cut', 'gateway-crash'],
    overrides: { partitions: 1, gateway: SMALL_CACHE },
    edits: [
      {
        file: 'libs/tail/src/catch-up-chunks.ts',
        from: 'const events = this.#byKey.get(key) ?? [];',
        to: 'const events = [...this.#byKey.values()].flat().sort((a, b) => a.event.offset - b.event.offset); void key;',
      },
    ],
  },
  {
    name: 'repetitions-run',
    seed: 1,
    breaks: 'a request that is posted again runs again',
    faults: ['duplicate-post'],
    edits: [
      {
        file: 'services/worker/src/consume/repetitions.ts',
        from: 'if (known === undefined) return false;',
        to: 'if (known === undefined || call.state === "queued") return false;',
      },
    ],
  },
  {
    name: 'unknown-appends-are-repeated',
    seed: 1,
    breaks: 'an append without a known outcome is made again',
    faults: ['append-unknown'],
    edits: [
      {
        file: 'services/worker/src/settle/partition-writer.ts',
        from: "if (!hasLogCode(error, 'APPEND_REFUSED')) throw error;",
        to: "if (!hasLogCode(error, 'APPEND_REFUSED') && !hasLogCode(error, 'APPEND_UNKNOWN')) throw error;\n        if (!hasLogCode(error, 'APPEND_REFUSED')) continue;",
      },
    ],
  },
  {
    name: 'ends-are-forgotten',
    seed: 1,
    breaks: 'gateways serve sessions that have ended',
    edits: [
      {
        file: 'services/gateway/src/session-check.ts',
        from: "context.directory.hasEnded(id.partition, id.key) ? 'ended' : 'lives'",
        to: "'lives'",
      },
    ],
  },
  {
    name: 'numbers-begin-anew',
    breaks: 'a resumed stream numbers its messages from 1',
    faults: ['connection-cut', 'gateway-crash'],
    edits: [
      {
        file: 'services/gateway/src/resume.ts',
        from: "seq: cursor.seq === 'end' ? 0 : cursor.seq, chain",
        to: 'seq: 0, chain',
      },
    ],
  },
  {
    name: 'marks-not-keyed-by-epoch',
    breaks: 'what was told of a former history counts in the next one',
    faults: ['truncated-events', 'recreated-inbound'],
    edits: [
      {
        file: 'libs/protocol/src/topic.ts',
        from: '`${META_PREFIX.mark}${epoch}/${topic}/${partition}`',
        to: '`${META_PREFIX.mark}${epoch.slice(0, 0)}/${topic}/${partition}`',
      },
    ],
  },
  {
    name: 'unknown-epochs-are-passed-over',
    seed: 40,
    breaks: 'a process that slept while meta was made anew takes no notice of claims and heartbeats of another epoch',
    faults: ['recreated-meta', 'recreated-sessions', 'gateway-pause', 'worker-pause', 'pause-at-await', 'cut-from-log'],
    edits: [
      {
        file: 'libs/tail/src/meta.ts',
        from: 'return !this.#folded.epochs.has(epoch) && ',
        to: 'return this.#folded.epochs.size > 1e9 && ',
      },
    ],
  },
  {
    name: 'sleepers-take-in-at-once',
    breaks: 'an owner that slept runs what it reads before it knows that it was replaced',
    test: 'services/worker/src/worker-slept.test.ts',
    edits: [
      {
        file: 'services/worker/src/claim/still-owner.ts',
        from: 'return this.#lapses === this.#settled && meta',
        to: 'return this.#lapses >= 0 || meta',
      },
    ],
  },
  {
    name: 'heartbeats-make-up-for-a-sleep',
    breaks: 'an owner that slept is sure again as soon as it sees its own heartbeat',
    test: 'services/worker/src/worker-slept.test.ts',
    edits: [
      {
        file: 'services/worker/src/claim/still-owner.ts',
        from: 'return this.#lapses === this.#settled && meta',
        to: 'return meta',
      },
    ],
  },
  {
    name: 'late-claims-are-forgotten',
    breaks: 'a worker that leaves does not wait for the claim that it has on its way',
    test: 'services/worker/src/worker-slept.test.ts',
    edits: [
      {
        file: 'services/worker/src/claim/partition-owner.ts',
        from: 'this.#claiming = appending.then(() => true, isRefused);',
        to: 'void [appending, isRefused];',
      },
    ],
  },
  {
    name: 'breaks-are-not-proved',
    breaks: 'an ack below what was acknowledged before is taken as it is',
    faults: ['truncated-events', 'recreated-events'],
    edits: [
      {
        file: 'libs/history/src/epoch-fold.ts',
        from: 'return acked <= highest;',
        to: 'return acked < 0 && acked <= highest;',
      },
    ],
  },
  {
    name: 'worker-acks-do-not-prove',
    breaks: 'an owner does not look where its own appends are acknowledged',
    test: 'services/worker/src/worker-history.test.ts',
    edits: [
      {
        file: 'services/worker/src/consume/tenure.ts',
        from: 'append: (to, records) => context.guard.append(to, records),',
        to: 'append: (to, records) => context.log.append(to, records),',
      },
    ],
  },
  {
    name: 'errors-share-the-last-id',
    breaks: 'each error of a batch says that the stream is over',
    test: 'tests/simulation/found-defects.test.ts',
    edits: [
      {
        file: 'services/gateway/src/terminal-events.ts',
        from: 'formatEvent(null, text)',
        to: 'formatEvent(eventId, text)',
      },
    ],
  },
  {
    name: 'silent-loss',
    breaks: 'a request that retention took before it was served is not told to its client',
    faults: ['inbound-retention', 'connection-cut'],
    edits: [
      {
        file: 'services/gateway/src/stream.ts',
        from: "if (stream.kind !== 'request' || this.#pending === null) return null;",
        to: "if (stream.kind !== 'never') return null;",
      },
    ],
  },
  {
    name: 'newer-instead-of-equal',
    breaks: 'a record counts if its owner is not older than the claim in force, so that a void claim writes',
    test: 'libs/history/src/ownership-model.test.ts',
    edits: [
      {
        file: 'libs/history/src/claims.ts',
        from: 'event.owner === null || event.owner === this.inForceAt(event.offset)',
        to: 'event.owner === null || event.owner >= (this.inForceAt(event.offset) ?? 0)',
      },
    ],
  },
  {
    name: 'divergence-is-not-seen',
    breaks: 'an anchor counts though another record stands there now',
    test: 'libs/history/src/resumption-model.test.ts',
    edits: [
      {
        file: 'libs/history/src/resumption.ts',
        from: 'finding.record.offset !== cursor.offset || anchorChecksum(finding.record) !== cursor.crc',
        to: 'finding.record.offset !== cursor.offset',
      },
    ],
  },
  {
    name: 'foreign-cursors-are-taken',
    seed: 11,
    breaks: 'a cursor of another session or stream is taken for one of this session',
    overrides: { gateways: 2, partitions: 1 },
    faults: ['clock-jump'],
    edits: [
      {
        file: 'libs/history/src/resumption.ts',
        from: 'equalBytes(cursor.tag, streamTag(request.sessionId, cursor.stream))',
        to: '(equalBytes(cursor.tag, streamTag(request.sessionId, cursor.stream)) || cursor.tag.length > 0)',
      },
    ],
  },
  {
    name: 'accepted-before-it-is-there',
    seed: 1,
    breaks: 'a notification or an answer is accepted before it is in the log',
    faults: ['append-refused', 'append-unknown', 'log-full'],
    edits: [
      {
        file: 'services/gateway/src/post.ts',
        from: '    await appendForClient(context, to, inboundRecords(context, incoming, null));',
        to: '    void appendForClient(context, to, inboundRecords(context, incoming, null)).catch(() => undefined);',
      },
    ],
  },
  {
    name: 'produced-again',
    breaks: 'a message of a producer that was said by a former owner is said again',
    test: 'services/worker/src/worker-produced.test.ts',
    edits: [
      {
        file: 'services/worker/src/consume/produced-messages.ts',
        from: 'if (isTakenOver && (phase.isPast || this.#wasSaid(at))) return null;',
        to: 'if (isTakenOver && phase.isPast) return null;',
      },
    ],
  },
  {
    name: 'doubt-is-told-as-a-bug',
    seed: 11,
    breaks: 'a worker tells a log that refuses an append, or leaves it in doubt, as a failure of its own',
    faults: ['append-unknown', 'log-full', 'cut-from-log'],
    edits: [
      {
        file: 'services/worker/src/claim/partition-owner.ts',
        from: 'const isTrouble = isOfTheLog(error);',
        to: "const isTrouble = hasLogCode(error, 'LOG_UNAVAILABLE');",
      },
    ],
  },
  {
    name: 'beheaded-batch-is-silent',
    breaks: 'a batch ends without a word on those of its requests that retention took',
    test: 'services/worker/src/worker-lost.test.ts',
    edits: [
      {
        file: 'services/worker/src/consume/tenure.ts',
        from: 'if (batch.hasEnded) return [];',
        to: 'if (places.length >= 0) return [];',
      },
    ],
  },
  {
    name: 'served-before-its-ends-are-read',
    breaks: 'a partition that was added is served before it is known which of its sessions have ended',
    test: 'services/gateway/src/session.test.ts',
    edits: [
      {
        file: 'services/gateway/src/served-partitions.ts',
        from: 'await directory.syncPartition(this.#count, this.#stop.signal);',
        to: 'void directory.syncPartition(this.#count, this.#stop.signal).catch(() => undefined);',
      },
    ],
  },
  {
    name: 'vanished-is-not-looked-after',
    breaks: 'a call whose request a truncation took is waited for for ever',
    test: 'services/gateway/src/limits.test.ts',
    edits: [
      {
        file: 'services/gateway/src/stream.ts',
        from: 'if (this.#isRequestHeld !== false) return true;',
        to: 'if (this.#isRequestHeld !== undefined) return true;',
      },
    ],
  },
  {
    name: 'log-without-deadline',
    breaks: 'an append that its driver never ends is waited for for ever',
    test: 'libs/log/src/answer-within.test.ts',
    edits: [
      {
        file: 'libs/log/src/answer-within.ts',
        from: 'append: (to, records) => ackWithin(clock, appendMs, log.append(to, records)),',
        to: 'append: (to, records) => log.append(to, records),',
      },
    ],
  },
  {
    name: 'worker-waits-for-its-log',
    breaks: 'a worker has no deadline for what it asks of a log that does not answer',
    test: 'tests/deadlines/cut-waits.test.ts',
    edits: [
      {
        file: 'services/worker/src/start-worker.ts',
        from: 'const log = answerWithin(deps.log, clock, config.appendTimeoutMs);',
        to: 'const log = deps.log;',
      },
    ],
  },
  {
    name: 'epochs-of-the-start-are-missed',
    breaks: 'a gateway serves the epoch that it read first, though another came while it started',
    test: 'services/gateway/src/broken-history.test.ts',
    edits: [
      {
        file: 'services/gateway/src/core.ts',
        from: 'for (let next = meta.epoch() ?? epoch; next !== epoch; next = meta.epoch() ?? epoch) {',
        to: 'for (let next = epoch; next !== epoch; next = epoch) {',
      },
    ],
  },
  {
    name: 'lost-requests-are-forgotten',
    breaks: 'an open stream waits for ever for a request of which the newest checkpoint no longer says that it is lost',
    test: 'services/gateway/src/lost-requests.test.ts',
    edits: [
      {
        file: 'libs/history/src/lost-requests.ts',
        from: 'return [...kept.slice(-MOST_KEPT), ...said];',
        to: 'return [...kept.slice(kept.length), ...said];',
      },
    ],
  },
  {
    name: 'repetitions-did-not-run',
    breaks: 'a call that may repeat one that retention took is said to have not run',
    test: 'services/worker/src/worker-takeover.test.ts',
    edits: [
      {
        file: 'services/worker/src/consume/taken-over-calls.ts',
        from: 'action.mayHaveRun || mayRepeat ||',
        to: 'action.mayHaveRun ||',
      },
    ],
  },
];
