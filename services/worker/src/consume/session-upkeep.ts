/**
 * What is done for sessions now and then: those that are idle or too old end, those that can be rebuilt are unloaded,
 * cursors of clients that cannot be refreshed are moved by a ping, and records are mended or forgotten.
 * SPEC: WRK-IDLE, WRK-PING, WRK-TOMBSTONE.
 */
import { ackWithin, errorText } from '@throughline/log';
import { canPrime } from '@throughline/protocol';
import { pingId } from '../settle/server-request-ids.ts';
import type { HostedSession } from './hosted-session.ts';
import type { ServerMessages } from './server-messages.ts';
import type { SessionLife } from './session-life.ts';
import type { SessionRecords } from './session-records.ts';
import type { TenureParts } from './tenure-parts.ts';

const TOMBSTONES_AT_ONCE = 200;

export interface SessionUpkeepOptions {
  readonly parts: TenureParts;
  readonly life: SessionLife;
  readonly records: SessionRecords;
  readonly server: ServerMessages;
}

export class SessionUpkeep {
  readonly #options: SessionUpkeepOptions;
  #pings = 0;
  #isForgetting = false;

  constructor(options: SessionUpkeepOptions) {
    this.#options = options;
  }

  run(): void {
    const { parts, life, records } = this.#options;
    const { sessions, context } = parts;
    const { servers, maxLifeMs, unloadAfterMs } = context.config;
    life.recordEnds();
    for (const [session, reason] of sessions.overdue((server) => (servers[server]?.idleTtl ?? 0) * 1000, maxLifeMs))
      void life.end(session.key, reason);
    for (const session of sessions.unloadable(unloadAfterMs, (server) => life.canRestore(server))) life.unload(session);
    for (const session of sessions.all()) {
      records.repair(session);
      this.#ping(session);
    }
    void this.#forget();
  }

  /** Clients of earlier revisions cannot parse an id without data: an idle cursor is kept ahead of retention by a message. */
  #ping(session: HostedSession): void {
    const { parts, server } = this.#options;
    const { clock, log } = parts.context;
    if (session.record?.initialized !== true || canPrime(session.record.version)) return;
    if (!session.standaloneSeen && !session.mayHaveMissed) return;
    if (clock.monoMs() - session.lastStandaloneMs < log.description.retentionMs / 4) return;
    const id = pingId(parts.claim, ++this.#pings);
    server.say(session, null, JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' }));
  }

  /** Sessions that ended more than a maximum life ago: their ids are refused by age before anybody looks them up. Never rejects. */
  async #forget(): Promise<void> {
    const { directory, partition, context } = this.#options.parts;
    if (this.#isForgetting) return;
    this.#isForgetting = true;
    try {
      const before = context.clock.wallMs() - context.config.maxLifeMs;
      const keys = directory.endedBefore(partition, before, TOMBSTONES_AT_ONCE);
      await ackWithin(context.clock, context.config.appendTimeoutMs, directory.forget(partition, keys));
    } catch (error) {
      context.logger.warn('records of former sessions could not be removed; trying again', {
        partition,
        error: errorText(error),
      });
    } finally {
      this.#isForgetting = false;
    }
  }
}
