/**
 * Requests that repeat an id of their session: the same request gets the first one's outcome on its own stream, whether
 * that is settled or still runs; another body is refused. SPEC: WRK-ALIAS, WRK-DEDUPE.
 */
import { errorText } from '@throughline/log';
import { wireError } from '@throughline/protocol';
import { outcomeLostError } from '../settle/call-errors.ts';
import { copyStream } from './copy-stream.ts';
import type { CopyOptions } from './copy-stream.ts';
import type { HostedSession } from './hosted-session.ts';
import { progressToken } from './open-call.ts';
import { readPatiently } from './read-patiently.ts';
import type { Mirror, OpenCall, SettledCall } from './open-call.ts';
import type { TenureParts } from './tenure-parts.ts';

/** Repetitions of one running request. */
const MAX_MIRRORS = 16;

export interface CallEnds {
  settle(session: HostedSession | undefined, call: OpenCall, error: ReturnType<typeof wireError>): void;
  answer(session: HostedSession | undefined, call: OpenCall, json: string): void;
  forget(call: OpenCall): void;
}

export class Repetitions {
  readonly #parts: TenureParts;
  readonly #ends: CallEnds;

  constructor(parts: TenureParts, ends: CallEnds) {
    this.#parts = parts;
    this.#ends = ends;
  }

  /**
   * Takes the call if it repeats one that the session knows; `false` if it does not.
   * @param isTakenOver a former owner may have copied a part of the outcome already.
   */
  take(session: HostedSession, call: OpenCall, id: string, isTakenOver: boolean): boolean {
    const first = session.calls.get(id);
    const known: SettledCall | undefined = first ?? session.settled.get(id);
    if (known === undefined) return false;
    if (known.bodyHash !== call.bodyHash) {
      this.#ends.settle(undefined, call, wireError('ID_REUSED', 'The request id was used before in this session'));
      return true;
    }
    if (first !== undefined && first.mirrors.length >= MAX_MIRRORS) {
      this.#ends.settle(undefined, call, wireError('CAPACITY', 'The request was repeated too often while it runs'));
      return true;
    }
    const mirror: Mirror = { call, pending: [], pendingChars: 0, hasOverflowed: false };
    call.state = 'running';
    call.mirrorOf = known.stream.at;
    first?.mirrors.push(mirror);
    void this.#copy(mirror, known, first, isTakenOver);
    return true;
  }

  /** Never rejects. */
  async #copy(mirror: Mirror, of: SettledCall, first: OpenCall | undefined, isTakenOver: boolean): Promise<void> {
    const { context, partition, over, settler } = this.#parts;
    const { call } = mirror;
    try {
      // The alias stands between what is copied from the log and what comes while it is: nothing is written in between.
      const below = await settler.alias(call, of.stream);
      await this.#copyBelow(mirror, of, below, isTakenOver);
      settler.level(mirror);
      // A settled request whose answer was not found, or a copy with holes.
      const isIncomplete = mirror.hasOverflowed || first === undefined || first.state === 'done';
      if (isIncomplete && !isDone(call)) this.#ends.settle(undefined, call, outcomeLostError());
      if (isDone(call)) this.#ends.forget(call);
    } catch (error) {
      const at = first?.mirrors.indexOf(mirror) ?? -1;
      if (at >= 0) first?.mirrors.splice(at, 1);
      if (over.aborted) return;
      this.#ends.settle(undefined, call, outcomeLostError());
      context.logger.warn('copying an outcome failed', { partition, error: errorText(error) });
    }
  }

  async #copyBelow(mirror: Mirror, of: SettledCall, below: number, isTakenOver: boolean): Promise<void> {
    const { context, partition, watch, settler, over } = this.#parts;
    const { call } = mirror;
    const source: Omit<CopyOptions, 'stream' | 'answers' | 'from'> = {
      log: readPatiently(context.log, context.clock),
      partition,
      claims: () => watch.claims(),
      key: call.key,
      below,
      signal: over,
    };
    let skip = 0;
    if (isTakenOver)
      for await (const copied of copyStream({
        ...source,
        stream: call.stream,
        from: call.after ?? 0,
        answers: call.at,
      }))
        if (!copied.answer) skip++;
    const isOwn = this.#ownership(call, of, skip > 0);
    if (call.batch !== null) skip = 0;
    for await (const { json, answer } of copyStream({
      ...source,
      stream: of.stream,
      from: of.after ?? 0,
      answers: of.at,
    })) {
      if (isDone(call)) return;
      if (answer) this.#ends.answer(undefined, call, json);
      else if (isOwn(json) && skip-- <= 0) settler.send(call, json);
      await context.shares.room(call.key);
    }
  }

  /**
   * Which messages of the source belong to `call`. Members of a batch share a stream: progress goes with its token, what
   * has none with the member that is copied first.
   */
  #ownership({ batch, message }: OpenCall, of: SettledCall, hasCopies: boolean): (json: string) => boolean {
    if (batch === null) return () => true;
    if (hasCopies) return () => false;
    const token = progressToken(message);
    const takesOthers = !batch.copied.has(of.stream.at);
    batch.copied.add(of.stream.at);
    return (json) => {
      const told = toldProgress(json);
      return told === null ? takesOthers : told === token;
    };
  }
}

/** The token of a progress notification; `null`: it is none. */
function toldProgress(json: string): unknown {
  const { method, params } = JSON.parse(json) as { method?: unknown; params?: { progressToken?: unknown } };
  return method === 'notifications/progress' ? (params?.progressToken ?? null) : null;
}

/** What settled it may have happened while something was awaited. */
function isDone(call: OpenCall): boolean {
  return call.state === 'done';
}
