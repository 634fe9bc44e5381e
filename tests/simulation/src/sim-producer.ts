/** A process that is no server: appends messages for sessions, many of them twice or more, as one that retries does. */
import { openMemoryLog } from '@throughline/log/memory';
import type { MemoryStore } from '@throughline/log/memory';
import type { Clock } from '@throughline/log';
import { INBOUND_TYPE, makeRecord } from '@throughline/protocol';
import { createChance } from './chance.ts';
import type { Plan } from './plan.ts';
import type { ProducedRecord, SessionRecordOfRun } from './records-of-run.ts';
import type { Trace } from './trace.ts';

export interface SimProducerOptions {
  readonly plan: Plan;
  readonly store: MemoryStore;
  readonly clock: Clock;
  readonly trace: Trace;
  /** Sessions as clients learn of them. */
  readonly sessions: readonly SessionRecordOfRun[];
  readonly produced: ProducedRecord[];
}

/** What the message called `name` says. */
export function producedText(name: string): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/message',
    params: { level: 'info', logger: 'producer', data: name },
  });
}

export function startProducer({ plan, store, clock, trace, sessions, produced }: SimProducerOptions): void {
  const log = openMemoryLog(store, { clock });
  for (const { atMs, draw, name } of plan.says ?? []) {
    clock.setTimer(atMs, () => {
      if (sessions.length === 0) return;
      const { id } = createChance(plan.seed, `says ${draw}`).pick(sessions);
      const [, partitionText, , , key = ''] = id.split('.');
      const partition = Number(partitionText);
      const record = makeRecord(INBOUND_TYPE.produced, key, producedText(name), { server: '', idempotencyKey: name });
      trace.add('producer', `${name} to ${key}`);
      log.append({ topic: 'inbound', partition }, [record]).then(
        () => produced.push({ session: id, name }),
        () => undefined,
      );
    });
  }
}
