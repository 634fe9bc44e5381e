/** Cuts a byte stream into lines. Bytes, not text: a character split over two chunks stays whole. */

export interface FramedLines {
  /** Complete lines without their line end. */
  readonly lines: readonly Buffer[];
  /** A line was longer than the bound; nothing after it is readable. */
  readonly tooLong: boolean;
}

export interface LineFramer {
  push(chunk: Buffer): FramedLines;
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** Holds at most `maxBytes` of an unfinished line. */
export function createLineFramer(maxBytes: number): LineFramer {
  let parts: Buffer[] = [];
  let held = 0;
  return {
    push(chunk) {
      const lines: Buffer[] = [];
      let from = 0;
      for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
        const piece = chunk.subarray(from, end);
        from = end + 1;
        if (held + piece.length > maxBytes) return { lines, tooLong: true };
        const line = held === 0 ? piece : Buffer.concat([...parts, piece]);
        parts = [];
        held = 0;
        lines.push(line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line);
      }
      const rest = chunk.subarray(from);
      if (held + rest.length > maxBytes) return { lines, tooLong: true };
      if (rest.length > 0) {
        parts.push(rest);
        held += rest.length;
      }
      return { lines, tooLong: false };
    },
  };
}
