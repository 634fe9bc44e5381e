/**
 * How deep JSON is nested, without parsing it: a parser takes half a microsecond a level, so that 4 MB of brackets stop
 * everything else for a second, and what recurses over the result later has no room on the stack. SPEC: GW-DEPTH.
 */
const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_ARRAY, OPEN_OBJECT, CLOSE_ARRAY, CLOSE_OBJECT] = [0x5b, 0x7b, 0x5d, 0x7d];

/** Whether arrays and objects of `json` (UTF-8) lie more than `most` deep in each other. Text that is no JSON gives either. */
export function isDeeperThan(json: Uint8Array, most: number): boolean {
  let depth = 0;
  let isString = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (isString) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) isString = false;
    } else if (byte === QUOTE) isString = true;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      if (++depth > most) return true;
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--;
  }
  return false;
}
