/** Stores for tests, on a log that the test can look into. */
import { systemClock } from '@throughline/log';
import type { Log } from '@throughline/log';
import { createMemoryStore, openMemoryLog } from '@throughline/log/memory';
import type { MemoryStore, MemoryStoreOptions } from '@throughline/log/memory';
import { openEventStore } from '../event-store.ts';
import type { EventStoreOptions, SessionEventStores } from '../event-store.ts';

export const SECRET = new Uint8Array(32).fill(7);

export interface Stores {
  readonly memory: MemoryStore;
  readonly log: Log;
  /** A process more on the same log. */
  open(options?: Partial<EventStoreOptions>): Promise<SessionEventStores>;
}

export function memoryStores(options: Partial<MemoryStoreOptions> = {}): Stores {
  const memory = createMemoryStore({ clock: systemClock, partitions: 1, ...options });
  const log = openMemoryLog(memory, { clock: systemClock });
  return {
    memory,
    log,
    open: (more = {}) =>
      openEventStore({ log: openMemoryLog(memory, { clock: systemClock }), secrets: [SECRET], ...more }),
  };
}

export interface Replayed {
  readonly stream: string;
  readonly ids: readonly string[];
  readonly messages: readonly unknown[];
}

/** What a store replays behind an id. */
export async function replay(
  events: {
    replayEventsAfter: (id: string, to: { send: (id: string, message: never) => Promise<void> }) => Promise<string>;
  },
  lastEventId: string,
): Promise<Replayed> {
  const ids: string[] = [];
  const messages: unknown[] = [];
  const stream = await events.replayEventsAfter(lastEventId, {
    send: async (id: string, message: unknown) => {
      ids.push(id);
      messages.push(message);
    },
  });
  return { stream, ids, messages };
}

export function note(n: number): {
  readonly jsonrpc: '2.0';
  readonly method: string;
  readonly params: { readonly n: number };
} {
  return { jsonrpc: '2.0', method: 'notifications/message', params: { n } };
}
