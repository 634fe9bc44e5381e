/** What a diagnosis is made against. */
import type { Asked, TopicChange } from '@throughline/log/kafka';

/** What the findings are held against. */
export interface Promises {
  readonly windowMs: number;
  readonly maxBodyBytes: number;
  readonly leaseMs: number;
  readonly brokers: readonly string[];
  readonly prefix: string;
  /** Of this command: `--log …`, so that a fix can be copied. */
  readonly logOptions: string;
}

/** With it, what the checks of Kafka need of the others. */
export interface Diagnosed extends Promises {
  readonly differences: Asked<readonly TopicChange[]> | null;
  readonly livingWorkers: number;
  /** A command of this product, to copy. */
  cli(command: string): string;
  /** The command that grants a right on what the prefix names. */
  acl(operation: string, resource: 'topic' | 'group' | 'cluster'): string;
}
