/** Chance in end-to-end tests: printed, and repeated by `E2E_SEED=<number>`. */
import process from 'node:process';
import { createSeededRandom } from '@throughline/testkit';
import type { SeededRandom } from '@throughline/testkit';
import { isKafka } from './log-under-test.ts';

export function drawSeed(what: string): { readonly seed: number; readonly random: SeededRandom } {
  const seed = Number(process.env['E2E_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  process.stdout.write(`${what}: E2E_SEED=${seed}\n`);
  return { seed, random: createSeededRandom(seed) };
}

/** Rounds of a test that kills: some in the change lane, fewer where it runs on Kafka as well, many in the deep one. */
export function rounds(counts: { readonly change: number; readonly kafka: number; readonly deep: number }): number {
  if (process.env['DEEP'] === '1') return counts.deep;
  return isKafka ? counts.kafka : counts.change;
}
