/**
 * Names that stand twice in one object. JSON leaves open which of two counts, and parsers differ: the server behind
 * would be asked for something else than was judged here. Pure. SPEC: GW-TWICE.
 */

/**
 * Whether an object has a name twice.
 * @param namesAt how many names were written at each level of the text, as `shapeOf` counts them.
 * @param value what `JSON.parse` made of that text, which keeps one of two.
 * @param levels how many arrays and objects may be around a name: those below are not looked into.
 */
export function hasRepeatedField(namesAt: readonly number[], value: unknown, levels: number): boolean {
  const written = namesAt.slice(0, levels + 1).reduce((sum, count) => sum + count, 0);
  return written !== countFields(value, levels);
}

function countFields(value: unknown, levels: number): number {
  if (levels === 0 || typeof value !== 'object' || value === null) return 0;
  const isArray = Array.isArray(value);
  const held: unknown[] = isArray ? value : Object.values(value);
  let count = isArray ? 0 : held.length;
  for (const inner of held) count += countFields(inner, levels - 1);
  return count;
}
