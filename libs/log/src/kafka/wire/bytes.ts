/** Kafka's primitive types, read and written. Numbers beyond 2^53 do not occur in offsets and times; those that do not fit throw. */

export class ByteReader {
  readonly buffer: Buffer;
  at = 0;

  constructor(buffer: Buffer) {
    this.buffer = buffer;
  }

  get left(): number {
    return this.buffer.length - this.at;
  }

  int8(): number {
    return this.buffer.readInt8(this.#take(1));
  }

  int16(): number {
    return this.buffer.readInt16BE(this.#take(2));
  }

  int32(): number {
    return this.buffer.readInt32BE(this.#take(4));
  }

  /** As a number; `RangeError` beyond 2^53. */
  int64(): number {
    const value = this.bigInt64();
    const number = Number(value);
    if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is no safe integer`);
    return number;
  }

  bigInt64(): bigint {
    return this.buffer.readBigInt64BE(this.#take(8));
  }

  /** Zigzag, up to 64 bits; exact to 2^53. */
  varint(): number {
    let value = 0;
    let scale = 1;
    for (let index = 0; index < 10; index++) {
      const byte = this.buffer.readUInt8(this.#take(1));
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      scale *= 128;
    }
    throw new RangeError('a varint of more than ten bytes');
  }

  string(): string {
    const text = this.nullableString();
    if (text === null) throw new RangeError('a string that must not be null is null');
    return text;
  }

  nullableString(): string | null {
    const length = this.int16();
    return length < 0 ? null : this.raw(length).toString('utf8');
  }

  /** Bytes with a length of 32 bits before them; empty for null. A view, not a copy. */
  bytes(): Buffer {
    return this.raw(Math.max(0, this.int32()));
  }

  /** A view of the next bytes, not a copy. */
  raw(length: number): Buffer {
    const start = this.#take(length);
    return this.buffer.subarray(start, start + length);
  }

  array<T>(item: () => T): T[] {
    const items: T[] = [];
    for (let count = this.int32(); count > 0; count--) items.push(item());
    return items;
  }

  // Of the flexible versions.

  unsignedVarint(): number {
    let value = 0;
    let scale = 1;
    for (let index = 0; index < 5; index++) {
      const byte = this.buffer.readUInt8(this.#take(1));
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new RangeError('an unsigned varint of more than five bytes');
  }

  /** Empty for null. */
  compactString(): string {
    return this.raw(Math.max(0, this.unsignedVarint() - 1)).toString('utf8');
  }

  /** Empty for null. */
  compactArray<T>(item: () => T): T[] {
    const items: T[] = [];
    for (let count = this.unsignedVarint() - 1; count > 0; count--) items.push(item());
    return items;
  }

  /** Tagged fields: number → bytes. */
  tags(): ReadonlyMap<number, Buffer> {
    const fields = new Map<number, Buffer>();
    for (let count = this.unsignedVarint(); count > 0; count--) {
      const tag = this.unsignedVarint();
      fields.set(tag, this.raw(this.unsignedVarint()));
    }
    return fields;
  }

  #take(length: number): number {
    const start = this.at;
    if (length < 0 || start + length > this.buffer.length)
      throw new RangeError(`${length} bytes at ${start} of ${this.buffer.length}`);
    this.at = start + length;
    return start;
  }
}

export class ByteWriter {
  #buffer: Buffer;
  #length = 0;

  constructor(size = 256) {
    this.#buffer = Buffer.allocUnsafe(size);
  }

  get length(): number {
    return this.#length;
  }

  int8(value: number): this {
    const at = this.#grow(1);
    this.#buffer.writeInt8(value, at);
    return this;
  }

  boolean(value: boolean): this {
    return this.int8(value ? 1 : 0);
  }

  int16(value: number): this {
    const at = this.#grow(2);
    this.#buffer.writeInt16BE(value, at);
    return this;
  }

  int32(value: number): this {
    const at = this.#grow(4);
    this.#buffer.writeInt32BE(value, at);
    return this;
  }

  int64(value: number | bigint): this {
    const at = this.#grow(8);
    this.#buffer.writeBigInt64BE(BigInt(value), at);
    return this;
  }

  varint(value: number): this {
    return this.unsignedVarint(value >= 0 ? value * 2 : -value * 2 - 1);
  }

  string(text: string): this {
    const bytes = Buffer.from(text, 'utf8');
    return this.int16(bytes.length).raw(bytes);
  }

  nullableString(text: string | null): this {
    return text === null ? this.int16(-1) : this.string(text);
  }

  bytes(value: Uint8Array): this {
    return this.int32(value.length).raw(value);
  }

  // Of the flexible versions.

  unsignedVarint(value: number): this {
    let left = value;
    while (left >= 0x80) {
      const at = this.#grow(1);
      this.#buffer.writeUInt8((left % 0x80) | 0x80, at);
      left = Math.floor(left / 0x80);
    }
    const at = this.#grow(1);
    this.#buffer.writeUInt8(left, at);
    return this;
  }

  compactString(text: string): this {
    const bytes = Buffer.from(text, 'utf8');
    return this.unsignedVarint(bytes.length + 1).raw(bytes);
  }

  compactArray<T>(items: readonly T[], write: (item: T) => void): this {
    this.unsignedVarint(items.length + 1);
    for (const item of items) write(item);
    return this;
  }

  /** No tagged fields. */
  noTags(): this {
    return this.int8(0);
  }

  raw(value: Uint8Array): this {
    const start = this.#grow(value.length);
    this.#buffer.set(value, start);
    return this;
  }

  array<T>(items: readonly T[], write: (item: T) => void): this {
    this.int32(items.length);
    for (const item of items) write(item);
    return this;
  }

  /** Overwrites what was written at `at`. */
  patchInt32(at: number, value: number): void {
    this.#buffer.writeInt32BE(value | 0, at);
  }

  /** A view of what was written. */
  done(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #grow(bytes: number): number {
    const start = this.#length;
    this.#length += bytes;
    if (this.#length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#length, this.#buffer.length * 2));
      larger.set(this.#buffer.subarray(0, start));
      this.#buffer = larger;
    }
    return start;
  }
}

/** Bytes of a zigzag varint. */
export function varintSize(value: number): number {
  let left = value >= 0 ? value * 2 : -value * 2 - 1;
  let size = 1;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) size++;
  return size;
}
