/** CRC-32C (Castagnoli), which guards record batches. Node's zlib has the other polynomial only. */

const TABLES = makeTables();

/** As a signed 32-bit number. */
export function crc32c(bytes: Uint8Array): number {
  const [t0, t1, t2, t3] = TABLES;
  let crc = -1;
  let at = 0;
  for (const whole = bytes.length - 3; at < whole; at += 4) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    crc = t3[crc & 0xff]! ^ t2[(crc >>> 8) & 0xff]! ^ t1[(crc >>> 16) & 0xff]! ^ t0[crc >>> 24]!;
  }
  for (; at < bytes.length; at++) crc = t0[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8);
  return ~crc;
}

/** Four tables, so that four bytes go at once. */
function makeTables(): readonly [Int32Array, Int32Array, Int32Array, Int32Array] {
  const first = new Int32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0x82f63b78;
    first[byte] = crc;
  }
  const next = (table: Int32Array): Int32Array => table.map((crc) => first[crc & 0xff]! ^ (crc >>> 8));
  const second = next(first);
  const third = next(second);
  return [first, second, third, next(third)];
}
