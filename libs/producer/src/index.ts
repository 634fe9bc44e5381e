export { hasProducerCode, ProducerError } from './errors.ts';
export type { ProducerErrorCode } from './errors.ts';
export { openProducer, RETRY_WITHIN_MS } from './producer.ts';
export type { AppendOptions, Produced, Producer, ProducerOptions } from './producer.ts';
