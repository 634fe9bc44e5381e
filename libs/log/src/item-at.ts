/** The item at an index that the caller knows to be there; `RangeError` when it is not, instead of an `undefined` that travels. */
export function itemAt<T>(list: readonly T[], index: number): T {
  const item = list[index];
  if (item === undefined) throw new RangeError(`no item at ${index} of ${list.length}`);
  return item;
}
