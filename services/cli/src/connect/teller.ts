/** Lines on stderr. What repeats is not repeated: a server that is away for an hour is told once a minute. SPEC: CONNECT-TELLS. */

const REPEAT_MS = 60_000;
const MAX_CHARS = 500;
const MAX_REMEMBERED = 50;

/** Control characters would let a server write lines of its own, or move the cursor of a terminal. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;

export interface Teller {
  /** @param more what may differ in a line that is told again. */
  (text: string, more?: string): void;
}

export function makeTeller(write: (line: string) => void, nowMs: () => number): Teller {
  const toldAtMs = new Map<string, number>();
  return (text, more = '') => {
    const line = printable(text);
    const now = nowMs();
    if (now - (toldAtMs.get(line) ?? -Infinity) < REPEAT_MS) return;
    if (toldAtMs.size >= MAX_REMEMBERED) toldAtMs.clear();
    toldAtMs.set(line, now);
    write(`throughline connect: ${printable(text + more)}\n`);
  };
}

function printable(text: string): string {
  return text.replace(CONTROL, ' ').slice(0, MAX_CHARS);
}
