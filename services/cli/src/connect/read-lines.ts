/** Lines of a byte stream, bounded. SPEC: CONNECT-STDIN. */

export type Line = { readonly kind: 'line'; readonly text: string } | { readonly kind: 'too-long' };

const NEWLINE = 10;

/**
 * Yields each line without its end; CRLF is taken as well. Of a line above `maxBytes` nothing is kept: it is told when
 * its end has come. What follows the last line end is a line if it is not empty. Bytes that are no UTF-8 become U+FFFD.
 */
export async function* readLines(input: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Line> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const take = (part: Uint8Array): void => {
    bytes += part.length;
    if (bytes > maxBytes) parts = [];
    else if (part.length > 0) parts.push(part);
  };
  const finish = (): Line => {
    const line: Line =
      bytes > maxBytes
        ? { kind: 'too-long' }
        : { kind: 'line', text: Buffer.concat(parts).toString('utf8').replace(/\r$/, '') };
    parts = [];
    bytes = 0;
    return line;
  };
  for await (const chunk of input) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      take(chunk.subarray(from, end));
      yield finish();
      from = end + 1;
    }
    take(chunk.subarray(from));
  }
  if (bytes > 0) yield finish();
}
