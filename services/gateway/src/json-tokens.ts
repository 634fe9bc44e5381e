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
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case QUOTE:
        at = endOfText(json, at + 1);
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

/** The place of the quote that ends a text which began before `from`, or the end of `json`. */
function endOfText(json: Uint8Array, from: number): number {
  for (let at = from; at < json.length; at++) {
    const byte = json[at];
    if (byte === BACKSLASH) at++;
    else if (byte === QUOTE) return at;
  }
  return json.length;
}

export interface JsonShape {
  /** Whether arrays and objects lie more than so many deep in each other; of text that is no JSON either answer. */
  readonly isTooDeep: boolean;
  /** Colons with so many arrays and objects around them, from none on: how many names were written at each level. */
  readonly namesAt: readonly number[];
}

/**
 * What can be told of `json` before it is parsed, in one pass that ends where it is too deep. A parser takes half a
 * microsecond a level, so that 4 MB of brackets stop everything else for a second, and what recurses over the result
 * later has no room on the stack. SPEC: GW-DEPTH, GW-TWICE.
 * @param mostDeep levels that are not too deep.
 * @param nameLevels below so many levels names are not counted.
 */
export function shapeOf(json: Uint8Array, mostDeep: number, nameLevels: number): JsonShape {
  const namesAt = Array.from({ length: nameLevels + 1 }, () => 0);
  let isTooDeep = false;
  eachToken(json, (kind, _at, depth) => {
    if (kind === 'open') isTooDeep = depth > mostDeep;
    // Brackets that close more than was opened stand in no JSON.
    else if (kind === 'colon' && depth >= 0 && depth <= nameLevels) namesAt[depth] = (namesAt[depth] ?? 0) + 1;
    return !isTooDeep;
  });
  return { isTooDeep, namesAt };
}
