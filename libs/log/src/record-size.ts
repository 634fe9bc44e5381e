/** How large a record is, for bounds: bytes of key, value and headers (names counted as UTF-8), without framing. */
import type { RecordInput } from '@throughline/protocol';
import { encodeText } from '@throughline/protocol';

/** Default of `maxRecordBytes` in the embedded drivers: 8 MiB, as `max.message.bytes` on Kafka. */
export const DEFAULT_MAX_RECORD_BYTES = 8 * 1024 * 1024;
/** Default of {@link ReadOptions.maxBytes}: 1 MiB. */
export const DEFAULT_READ_BYTES = 1024 * 1024;

const ASCII = /^[\0-\x7f]*$/;

export function recordBytes(record: RecordInput): number {
  let bytes = (record.key?.length ?? 0) + (record.value?.length ?? 0);
  for (const [name, value] of record.headers) {
    bytes += (ASCII.test(name) ? name.length : encodeText(name).length) + value.length;
  }
  return bytes;
}
