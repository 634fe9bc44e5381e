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
  /** What was found first that is beyond its bound; of text that is no JSON any answer. */
  readonly excess: 'depth' | 'density' | null;
  /** Colons with so many arrays and objects around them, from none on: how many names were written at each level. */
  readonly namesAt: readonly number[];
}

export interface ShapeBounds {
  /** Arrays and objects in each other. */
  readonly depth: number;
  /** Names, arrays and objects together. */
  readonly parts: number;
  /** Below so many levels names are not counted one by one. */
  readonly nameLevels: number;
}

/**
 * What can be told of `json` before it is parsed, in one pass that ends where it is too deep or too dense. Time goes
 * into names, arrays and objects, not into bytes: 4 MB of them stop everything else in the process for a second, each
 * time that somebody reads the message. What is too deep has no room on the stack of who recurses over it.
 * SPEC: GW-DEPTH, GW-DENSE, GW-TWICE.
 */
export function shapeOf(json: Uint8Array, bounds: ShapeBounds): JsonShape {
  const namesAt = Array.from({ length: bounds.nameLevels + 1 }, () => 0);
  let parts = 0;
  let excess: JsonShape['excess'] = null;
  eachToken(json, (kind, _at, depth) => {
    if (kind !== 'open' && kind !== 'colon') return true;
    // Brackets that close more than was opened stand in no JSON.
    if (kind === 'colon' && depth >= 0 && depth <= bounds.nameLevels) namesAt[depth] = (namesAt[depth] ?? 0) + 1;
    if (kind === 'open' && depth > bounds.depth) excess = 'depth';
    else if (++parts > bounds.parts) excess = 'density';
    return excess === null;
  });
  return { excess, namesAt };
}
