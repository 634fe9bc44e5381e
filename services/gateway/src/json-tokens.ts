/** The structure of JSON without parsing it. Pure. */
const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_ARRAY, OPEN_OBJECT, CLOSE_ARRAY, CLOSE_OBJECT] = [0x5b, 0x7b, 0x5d, 0x7d];
const [COMMA, COLON] = [0x2c, 0x3a];

/**
 * Brackets, commas and colons of `json` (UTF-8) outside of its texts, in order, until `visit` says `false`. Never throws.
 * @param visit gets the place in the bytes, and how many arrays and objects are around it, those that it opens or closes
 * included.
 */
export function eachToken(
  json: Uint8Array,
  visit: (kind: 'open' | 'close' | 'comma' | 'colon', at: number, depth: number) => boolean,
): void {
  let depth = 0;
  let isString = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (isString) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) isString = false;
      continue;
    }
    switch (byte) {
      case QUOTE:
        isString = true;
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (!visit('open', at, ++depth)) return;
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        if (!visit('close', at, depth--)) return;
        break;
      case COMMA:
        if (!visit('comma', at, depth)) return;
        break;
      case COLON:
        if (!visit('colon', at, depth)) return;
        break;
      default:
    }
  }
}

/**
 * Whether arrays and objects lie more than `most` deep in each other; of text that is no JSON either answer. A parser
 * takes half a microsecond a level, so that 4 MB of brackets stop everything else for a second, and what recurses over
 * the result later has no room on the stack. SPEC: GW-DEPTH.
 */
export function isDeeperThan(json: Uint8Array, most: number): boolean {
  let isDeeper = false;
  eachToken(json, (_kind, _at, depth) => {
    isDeeper = depth > most;
    return !isDeeper;
  });
  return isDeeper;
}
