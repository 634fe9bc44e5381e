/** What a simulated client looks at after all faults: streams of living sessions, and sessions that must be gone. */
import { sleep } from '@throughline/log';
import type { Chance } from './chance.ts';
import type { ClientSession } from './client-session.ts';
import { BACKOFF_MS } from './client-wire.ts';
import type { ClientWire, SimClientOptions } from './client-wire.ts';

export interface CheckDeps {
  readonly options: SimClientOptions;
  readonly wire: ClientWire;
  readonly chance: Chance;
}

/** Reads every stream of its living sessions again, from the oldest cursor, on every gateway. */
export async function rereadAll(deps: CheckDeps, sessions: readonly ClientSession[]): Promise<void> {
  for (const session of sessions) {
    if (session.over.signal.aborted) continue;
    for (const [label, stream] of session.streams) {
      const oldest = stream.cursors[0];
      if (oldest === undefined || label.startsWith('s')) continue;
      for (const gateway of deps.options.gateways) await reread(deps, session, gateway, oldest.id);
    }
  }
}

/** Sessions that were ended, by this client or by a refusal, must be gone everywhere. */
export async function checkGone(
  { options, wire, chance }: CheckDeps,
  sessions: readonly ClientSession[],
): Promise<void> {
  const { gateways, records, clock } = options;
  for (const session of sessions) {
    const { id, lost, server } = session.record;
    // Told by a 404 of one gateway, it is gone there; told in-band, it must be gone everywhere.
    if (lost === null || (!session.record.deleted && !lost.startsWith('in-band'))) continue;
    for (const gateway of gateways) {
      let status: number | null = null;
      for (let tries = 0; tries < 20 && (status === null || status === 503); tries++) {
        const record = wire.record(session, 'POST', [], null, chance);
        record.gateway = gateway;
        const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' });
        status = (await wire.fetch(record, wire.wire('POST', session, server, body, null), chance, {})).status;
        if (status === null || status === 503) await sleep(clock, BACKOFF_MS);
      }
      records.gone.push({ session: id, gateway, status });
    }
  }
}

async function reread(
  { options, wire, chance }: CheckDeps,
  session: ClientSession,
  gateway: string,
  cursor: string,
): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    const record = wire.record(session, 'GET', [], cursor, chance);
    record.gateway = gateway;
    const request = wire.wire('GET', session, session.record.server, '', cursor);
    const { status } = await wire.fetch(record, request, chance, {});
    if (status !== null && status !== 503) {
      record.isReread = true;
      return;
    }
    await sleep(options.clock, BACKOFF_MS);
  }
}
