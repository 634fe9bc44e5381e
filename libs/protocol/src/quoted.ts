/** Foreign text in a reason: in quotes, escaped, and short, also where each character is escaped by six. Pure. SPEC: REC-UNREADABLE. */

const MOST_QUOTED = 100;

/** @param most characters of `text` that are shown at most. */
export function quoted(text: string, most: number): string {
  const whole = JSON.stringify(text.slice(0, most));
  return whole.length <= MOST_QUOTED ? whole : `${whole.slice(0, MOST_QUOTED)}…`;
}
