/** What a figure was measured on. */
import { cpus, release, totalmem } from 'node:os';
import process from 'node:process';
import { KAFKA_VERSION } from '@throughline/testkit/kafka';

export function describeMachine(): string {
  const [cpu] = cpus();
  const memory = (totalmem() / 1024 ** 3).toFixed(0);
  return `${cpus().length} cores (${cpu?.model.trim() ?? 'unknown'}), ${memory} GiB, Linux ${release()}, Node ${process.version}, Kafka ${KAFKA_VERSION}, all on loopback`;
}
