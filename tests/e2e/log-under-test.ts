/**
 * The log that these tests run on: a file, or in the Kafka lane topics of their own on the broker of the run
 * (vitest.kafka-e2e.config.ts). Without a broker that lane skips them, and counts them.
 */
import { makeFilePlace, makeKafkaPlace } from '@throughline/testkit/processes';
import type { MakeLogPlace } from '@throughline/testkit/processes';
import { inject, it as always } from 'vitest';

const kafka = inject('kafka') as { readonly brokers: readonly string[] } | null | undefined;

export const isKafka = kafka !== undefined;

export const it = always.skipIf(kafka === null);

export const makeLog: MakeLogPlace = kafka == null ? makeFilePlace : makeKafkaPlace(kafka);
