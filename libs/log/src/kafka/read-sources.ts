/**
 * Names where an answer to a read came from, so that a reader can tell that something failed or moved since its last
 * one: a broker that comes back with a part of its log, or another leader, answers as if nothing had happened. SPEC: KAFKA-SOURCE.
 */
import type { Address } from './address.ts';

export interface ReadSources {
  /** A read of the partition failed, and is tried again. */
  noteFailure(topic: string, partition: number): void;
  /** The topic is another than before, under its name. */
  noteMadeAnew(topic: string): void;
  /** A connection to the broker turned out to be gone when it was needed. */
  noteLoss(address: Address): void;
  /** How often that was. */
  madeAnew(topic: string): number;
  /** The source of an answer that has just come. */
  nameOf(address: Address, topic: string, partition: number): string;
}

export function createReadSources(): ReadSources {
  const counts = new Map<string, number>();
  const countOf = (what: string): number => counts.get(what) ?? 0;
  const note = (what: string): void => {
    counts.set(what, countOf(what) + 1);
  };
  const broker = ({ host, port }: Address): string => `${host}:${port}`;
  return {
    noteFailure(topic, partition) {
      note(`${topic} ${partition}`);
    },
    noteMadeAnew(topic) {
      note(topic);
    },
    madeAnew: countOf,
    noteLoss(address) {
      note(broker(address));
    },
    nameOf: (address, topic, partition) =>
      `${broker(address)} ${countOf(broker(address))} ${countOf(`${topic} ${partition}`)}`,
  };
}
