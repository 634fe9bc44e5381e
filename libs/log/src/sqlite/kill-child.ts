/** A process that appends as fast as it can and says each ack, until it is killed. Arguments: file, name. */
import { writeSync } from 'node:fs';
import { openSqliteLog } from './index.ts';
import { killRecord } from './kill-record.ts';

const [file = '', name = ''] = process.argv.slice(2);
const log = await openSqliteLog({ file, partitions: 2 });

/** Several callers a partition: what they append is committed in groups. */
async function run(caller: string, partition: number): Promise<never> {
  for (let index = 0; ; index++) {
    const count = 1 + (index % 3);
    const records = Array.from({ length: count }, (_, part) => killRecord(caller, index, part));
    const { offsets } = await log.append({ topic: 'events', partition }, records);
    writeSync(1, `${partition} ${offsets[0]} ${count} ${caller} ${index}\n`);
  }
}

await Promise.all(Array.from({ length: 8 }, (_, index) => run(`${name}.${index}`, index % 2)));
