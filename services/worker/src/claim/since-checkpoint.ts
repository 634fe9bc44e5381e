/** What a successor needs of the accepted records since the newest checkpoint: a fold, begun anew by each checkpoint. SPEC: WRK-TAKEOVER. */
import { RequestLedger } from '@throughline/history';
import { readCheckpoint, readSessionEnd } from '@throughline/protocol';
import type { Checkpoint, EventRecord, Offset, SessionEndReason } from '@throughline/protocol';

export class SinceCheckpoint {
  readonly #endedStreams = new Set<Offset>();
  readonly #aliases = new Set<Offset>();
  readonly #endedSessions = new Map<string, SessionEndReason>();
  #ledger = new RequestLedger(null);
  #checkpoint: Checkpoint | null = null;
  #knownFrom: Offset = 0;

  /** The newest checkpoint; `null` if there was none since the fold began. */
  checkpoint(): Checkpoint | null {
    return this.#checkpoint;
  }

  /** From here on every record was folded. */
  knownFrom(): Offset {
    return this.#knownFrom;
  }

  ledger(): RequestLedger {
    return this.#ledger;
  }

  hasEnded(stream: Offset): boolean {
    return this.#endedStreams.has(stream);
  }

  /** The request at the head of this stream repeats another. */
  isAlias(stream: Offset): boolean {
    return this.#aliases.has(stream);
  }

  /** Sessions of which the log says that they have ended, while the compacted topic may not say so yet. */
  endedSessions(): ReadonlyMap<string, SessionEndReason> {
    return this.#endedSessions;
  }

  /** Records below `start` were not read: nothing that was folded before is complete. */
  restart(start: Offset): void {
    this.#begin(null);
    this.#knownFrom = start;
  }

  /** Folds an accepted record. */
  fold(event: EventRecord): void {
    const { body } = event;
    if (body.type === 'checkpoint') {
      const checkpoint = readCheckpoint(event.record);
      if (checkpoint !== null) this.#begin(checkpoint);
      return;
    }
    if (body.type === 'alias') this.#aliases.add(body.stream.at);
    else if (body.type === 'ended') this.#endedStreams.add(body.stream.at);
    else if (body.type === 'message' && body.end && typeof body.stream !== 'string')
      this.#endedStreams.add(body.stream.at);
    else if (body.type === 'sessionEnded')
      this.#endedSessions.set(event.key, readSessionEnd(event.record)?.reason ?? 'unknown');
    this.#ledger.fold(event);
  }

  #begin(checkpoint: Checkpoint | null): void {
    this.#checkpoint = checkpoint;
    this.#ledger = new RequestLedger(checkpoint);
    this.#endedStreams.clear();
    this.#aliases.clear();
    this.#endedSessions.clear();
    for (const key of checkpoint?.ending ?? []) this.#endedSessions.set(key, 'unknown');
  }
}
