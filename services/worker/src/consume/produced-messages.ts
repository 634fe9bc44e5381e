/**
 * What other processes than the server say to the client of a session. The owner puts it on the standalone stream, so the
 * fold of `events` is what it was: it counts under a claim or not at all. A message has a name in its session: a second
 * one of that name is the same message come again, and is not said. SPEC: PRD-*.
 */
import { classifyText, decodeText } from '@throughline/protocol';
import type { InboundRecord, Offset } from '@throughline/protocol';
import type { DedupeWindow } from './dedupe-window.ts';
import { ProducedNames } from './produced-names.ts';
import type { SessionLife } from './session-life.ts';
import { drop } from './tenure-parts.ts';
import type { Phase, TenureParts } from './tenure-parts.ts';

type ProducedBody = Extract<InboundRecord['body'], { readonly type: 'produced' }>;

export class ProducedMessages {
  readonly #parts: TenureParts;
  readonly #life: SessionLife;
  readonly #dedupe: DedupeWindow;
  readonly #names = new ProducedNames();

  constructor(parts: TenureParts, life: SessionLife, dedupe: DedupeWindow) {
    this.#parts = parts;
    this.#life = life;
    this.#dedupe = dedupe;
  }

  /** Synchronous: after it the record counts as taken in. Returns why it cannot be used, or `null`. */
  take({ offset: at, key, record }: InboundRecord, body: ProducedBody, phase: Phase): string | null {
    const isTakenOver = phase.kind === 'takeover';
    const json = decodeText(record.value ?? new Uint8Array(0));
    const classified = classifyText(json);
    if ('fault' in classified) return classified.fault;
    // The server could not know the answer to a request that it has not asked.
    if (classified.kind !== 'notification') return 'a producer may send notifications only';
    // Whoever sent it has long since sent it again, and nobody knows the name any more.
    if (body.untilMs !== null && record.timestampMs > body.untilMs)
      return this.#drop('produced-late', isTakenOver && phase.isPast);
    const isKnown = this.#names.meet(`${key}\n${body.idempotencyKey}`, record.timestampMs);
    this.#dedupe.took(at, isTakenOver ? phase.newestMs - record.timestampMs : 0);
    if (isTakenOver && (phase.isPast || this.#wasSaid(at))) return null;
    if (isKnown) return this.#drop('produced-again');
    // Whether it was said is no longer held: never twice.
    if (isTakenOver && (phase.knownFrom ?? 0) > 0) return this.#drop('produced-in-doubt');
    const session = this.#parts.sessions.get(key);
    if (session === undefined || session.ended || this.#life.isTerminating(key))
      return this.#drop('produced-no-session');
    return this.#parts.settler.produced(key, json, at) ? null : this.#drop('produced-too-large');
  }

  #wasSaid(at: Offset): boolean {
    return this.#parts.watch.since().ledger().get(at)?.ended === true;
  }

  #drop(reason: string, isPast = false): null {
    if (!isPast) drop(this.#parts, reason);
    return null;
  }
}
