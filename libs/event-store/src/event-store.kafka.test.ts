/** The same on a broker: ids that are made of an ack are those that are made of a read. */
import { randomUUID } from 'node:crypto';
import { systemClock } from '@throughline/log';
import { applyTopics, openKafkaLog } from '@throughline/log/kafka';
import { parseEventId } from '@throughline/protocol';
import { describe, expect, inject, it } from 'vitest';
import { openEventStore } from './event-store.ts';
import { note, replay, SECRET } from './testing/open-stores.ts';

const found = inject('kafka') as { readonly brokers: readonly string[] } | null | undefined;

describe.skipIf(found == null)('the event store on Kafka', () => {
  it('[EVS-ID] [EVS-RESTORE] replays what it stored under the same ids, and another process goes on', async () => {
    const client = { brokers: found?.brokers ?? [], clientId: 'event-store-test', clock: systemClock };
    const prefix = `event-store-${randomUUID().slice(0, 8)}`;
    await applyTopics(client, { prefix, partitions: 2, replication: 1 });
    await using logs = new AsyncDisposableStack();
    const open = async () => {
      const log = logs.adopt(await openKafkaLog({ ...client, prefix }), (each) => each.close());
      return logs.adopt(await openEventStore({ log, secrets: [SECRET] }), (each) => each.close());
    };
    const [former, next] = [await open(), await open()];
    const session = await former.create();
    const stream = randomUUID();
    const primer = await session.storeEvent(stream, {});
    const ids = await Promise.all(Array.from({ length: 50 }, (_, n) => session.storeEvent(stream, note(n))));
    expect(ids.map((id) => parseEventId(id)?.seq)).toEqual(Array.from({ length: 50 }, (_, n) => n + 1));
    expect(await replay(session, primer)).toEqual({
      stream,
      ids,
      messages: Array.from({ length: 50 }, (_, n) => note(n)),
    });
    const restored = (await next.find(session.sessionId))!;
    expect((await replay(restored, ids[47]!)).ids).toEqual(ids.slice(48));
    const beyond = ids[49]!.split('.').with(2, '100000').join('.');
    expect((await restored.judge(beyond))?.reason).toBe('beyond-end');
    await session.end();
    expect(await next.find(session.sessionId)).toBeNull();
  });
});
