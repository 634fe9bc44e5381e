/** The other end of two hops by our own driver: what comes on `inbound` goes to `events`. Arguments: broker, prefix. */
import { systemClock } from '@throughline/log';
import { openKafkaLog } from '@throughline/log/kafka';

const [broker = '', prefix = ''] = process.argv.slice(2);
const log = await openKafkaLog({ brokers: [broker], clientId: 'bench-echo', clock: systemClock, prefix });
const inbound = { topic: 'inbound', partition: 0 } as const;
let position = (await log.bounds(inbound)).end;
process.stdout.write('ready\n');
for (;;) {
  const batch = await log.read(inbound, position, { waitMs: 500 });
  position = batch.next;
  if (batch.records.length > 0) await log.append({ topic: 'events', partition: 0 }, batch.records);
}
