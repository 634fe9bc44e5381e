/** What a diagnosis is made against. */
import type { CommandName } from '../command-table.ts';
import type { Asked, TopicChange } from '@throughline/log/kafka';

/** What the findings are held against. */
export interface Promises {
  readonly windowMs: number;
  readonly maxBodyBytes: number;
  readonly leaseMs: number;
  readonly brokers: readonly string[];
  readonly prefix: string;
  /** A command of this product with the options of this one, so that a fix can be copied. */
  cli(name: CommandName, own?: readonly string[]): string;
}

/** With it, what the checks of Kafka need of the others. */
export interface Diagnosed extends Promises {
  readonly differences: Asked<readonly TopicChange[]> | null;
  readonly livingWorkers: number;
  /** For what is not known: the right that is missing, or else where to look before another try. */
  fixFor(asked: { readonly denied: boolean }, operation: string, resource: 'topic' | 'group' | 'cluster'): string;
  /** The command that grants a right on what the prefix names. */
  acl(operation: string, resource: 'topic' | 'group' | 'cluster'): string;
}
