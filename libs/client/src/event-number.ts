/** Ids that are decimal numbers. SPEC: CLIENT-NUMBERING. */
const DECIMAL = /^(?:0|[1-9][0-9]{0,15})$/;

/** The number that an id is, written in the one way there is, and held exactly; `null` if it is none. */
export function eventNumber(id: string): number | null {
  const number = DECIMAL.test(id) ? Number(id) : NaN;
  return Number.isSafeInteger(number) ? number : null;
}
