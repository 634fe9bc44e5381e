/** Whether two values that `JSON.parse` gave say the same: the order of fields does not count, that of items does. */
export function isSameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => isSameJson(item, b[index]));
  }
  const fields = Object.keys(a);
  if (fields.length !== Object.keys(b).length) return false;
  return fields.every(
    (field) =>
      Object.hasOwn(b, field) &&
      isSameJson((a as Record<string, unknown>)[field], (b as Record<string, unknown>)[field]),
  );
}
