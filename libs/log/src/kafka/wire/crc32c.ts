/** CRC-32C (Castagnoli), which guards record batches. Node's zlib has the other polynomial only. */

const TABLES = makeTables();

/** As a signed 32-bit number. */
export function crc32c(bytes: Uint8Array): number {
  const [t0, t1, t2, t3] = TABLES;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let crc = -1;
  let at = 0;
  for (; at + 4 <= bytes.length; at += 4) {
    crc ^= view.getInt32(at, true);
    crc = pick(t3, crc) ^ pick(t2, crc >>> 8) ^ pick(t1, crc >>> 16) ^ pick(t0, crc >>> 24);
  }
  for (; at < bytes.length; at++) crc = pick(t0, crc ^ view.getUint8(at)) ^ (crc >>> 8);
  return ~crc;
}

/** A table has an entry for every byte. */
function pick(table: Int32Array, index: number): number {
  return table[index & 0xff] ?? 0;
}

/** Four tables, so that four bytes go at once. */
function makeTables(): readonly [Int32Array, Int32Array, Int32Array, Int32Array] {
  const first = new Int32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0x82f63b78;
    first[byte] = crc;
  }
  const next = (table: Int32Array): Int32Array => table.map((crc) => pick(first, crc) ^ (crc >>> 8));
  const second = next(first);
  const third = next(second);
  return [first, second, third, next(third)];
}
