/**
 * Calls of former owners that had already spoken: what they said and heard is read before they run again, or are failed.
 * SPEC: WRK-MEMORY, WRK-MEMORY-BOUND, WRK-WITHDRAW.
 */
import { ReplayMemory } from '@throughline/history';
import { errorText } from '@throughline/log';
import type { Log } from '@throughline/log';
import { classifyText, decodeText, STANDALONE } from '@throughline/protocol';
import type { JsonRpcResponse, Offset } from '@throughline/protocol';
import { CallMemory } from './call-memory.ts';
import type { HostedSession } from './hosted-session.ts';
import { idKey } from './open-call.ts';
import type { OpenCall } from './open-call.ts';
import { readPatiently } from './read-patiently.ts';
import { readWords } from './read-words.ts';
import type { SharedQuestion, Words } from './read-words.ts';
import { answerKey } from './tenure-parts.ts';
import type { TakeoverPhase, TenureParts } from './tenure-parts.ts';

export interface RecallHooks {
  /** What the call said is known: it may run. */
  run(session: HostedSession, call: OpenCall, attempt: number): void;
  /** It must not, or cannot, be run again. The questions that it left open stand in `session.outgoing`. */
  lose(session: HostedSession, call: OpenCall): void;
}

interface Recalled {
  readonly session: HostedSession;
  readonly call: OpenCall;
  readonly memory: CallMemory;
  /** `null`: it is not run. */
  readonly attempt: number | null;
  readonly answers: TakeoverPhase['answers'];
}

export class RecalledCalls {
  readonly #log: Pick<Log, 'read'>;
  readonly #parts: TenureParts;
  readonly #hooks: RecallHooks;
  #waiting: Recalled[] = [];

  constructor(parts: TenureParts, hooks: RecallHooks) {
    this.#parts = parts;
    this.#log = readPatiently(parts.context.log, parts.context.clock);
    this.#hooks = hooks;
  }

  /** The call waits for {@link begin}. @param attempt `null`: it fails then, after what it asked was withdrawn. */
  add(session: HostedSession, call: OpenCall, attempt: number | null, answers: TakeoverPhase['answers']): void {
    const memory = new CallMemory();
    call.memory = memory;
    this.#waiting.push({ session, call, memory, attempt, answers });
  }

  /** All that lay in `inbound` was taken in: reads what the waiting calls said, and lets each go on. */
  begin(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    if (waiting.length > 0) void this.#recall(waiting);
  }

  /** Never rejects. */
  async #recall(waiting: readonly Recalled[]): Promise<void> {
    const { context, partition, claim, watch, over } = this.#parts;
    try {
      const words = await readWords(
        { log: this.#log, partition, claims: () => watch.claims(), below: claim, signal: over },
        waiting.map(({ call }) => call),
      );
      for (const recalled of waiting) {
        const said = words.get(recalled.call);
        if (said !== undefined) await this.#goOn(recalled, said);
      }
    } catch (error) {
      if (over.aborted) return;
      context.logger.warn('what calls had said cannot be read; they fail', { partition, error: errorText(error) });
      for (const { session, call } of waiting) if (call.memory?.replay === null) this.#hooks.lose(session, call);
    }
  }

  /** Errors: those of `Log.read`. */
  async #goOn(
    { session, call, memory, attempt, answers }: Recalled,
    { said, asked, shared, fault }: Words,
  ): Promise<void> {
    const { context, partition, over } = this.#parts;
    const replay = new ReplayMemory(said);
    const learn = (answer: JsonRpcResponse): void => {
      if (replay.learn(answer)) memory.fits(JSON.stringify(answer).length);
    };
    for (const id of asked) {
      const at = answers.get(answerKey(call.key, idKey(id)));
      if (at === undefined) continue;
      const answer = await this.#answerAt(at);
      if (answer === null) continue;
      learn(answer);
      asked.delete(id);
    }
    if (over.aborted || call.state === 'done') return;
    // From here on answers find their questions.
    const early = memory.takeEarly();
    for (const answer of early) {
      learn(answer);
      if (answer.id !== null) asked.delete(answer.id);
    }
    memory.replay = replay;
    for (const id of asked) session.outgoing.set(String(id), { call, id: null });
    for (const question of shared) {
      const isAnswered =
        answers.has(answerKey(call.key, idKey(question.id))) || early.some(({ id }) => id === question.id);
      if (question.isOpen && !isAnswered) this.#takeOver(session, call, question);
      question.isOpen = false;
    }
    const why = fault ?? (memory.hasOverflowed ? 'too-large' : null);
    if (attempt !== null && why === null) {
      this.#hooks.run(session, call, attempt);
      return;
    }
    if (attempt !== null)
      context.logger.warn('a call cannot be run again with what it said before', { partition, at: call.at, why });
    this.#hooks.lose(session, call);
  }

  /** A question that may be that of the call, or of others that fail too: it is withdrawn where it stands, if that stream goes on. */
  #takeOver(session: HostedSession, call: OpenCall, { id, stream }: SharedQuestion): void {
    const on = stream === STANDALONE ? null : [...session.calls.values()].find((each) => each.stream.at === stream.at);
    session.outgoing.set(String(id), { call: on === undefined ? call : on, id: null, askedBy: call });
  }

  async #answerAt(at: Offset): Promise<JsonRpcResponse | null> {
    const { partition, over } = this.#parts;
    const { records } = await this.#log.read({ topic: 'inbound', partition }, at, { maxBytes: 1, signal: over });
    const [record] = records;
    if (record?.offset !== at || record.value === null) return null;
    const classified = classifyText(decodeText(record.value));
    return 'kind' in classified && classified.kind === 'response' ? classified.message : null;
  }
}
