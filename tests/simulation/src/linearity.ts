/**
 * Proves from what clients were told that the log is one: each acknowledged append has one position of its own, in the
 * order of real time, and every reader of a stream got a piece of one and the same sequence. Pure, and ignorant of how
 * the product does it. SPEC: SIM-LINEAR.
 */

/** An append that its client was told of, at the place that it was told. */
export interface AckedAppend {
  /** Whatever has positions of its own: one partition in one epoch. */
  readonly log: string;
  readonly position: number;
  /** Nothing of it was there before, and all of it was there after. */
  readonly sentMs: number;
  readonly ackedMs: number;
  /** For people. */
  readonly who: string;
}

/** What one connection delivered of one stream, in the order of coming. */
export interface Delivery {
  readonly stream: string;
  readonly items: readonly { readonly seq: number; readonly offset: number; readonly text: string }[];
  readonly who: string;
}

/** What contradicts that there is one order of all appends which each client could have seen; empty if nothing does. */
export function breaksOfOrder(appends: readonly AckedAppend[]): readonly string[] {
  const said: string[] = [];
  for (const of of groupBy(appends, ({ log }) => log).values()) {
    const sorted = [...of].sort((a, b) => b.position - a.position);
    let later: AckedAppend | null = null;
    let above: AckedAppend | null = null;
    for (const append of sorted) {
      if (above?.position === append.position)
        said.push(`${append.who} and ${above.who} were both told position ${append.position} of ${append.log}`);
      // Of all that stand behind it, the one that was acknowledged first.
      if (later !== null && later.ackedMs < append.sentMs)
        said.push(
          `${append.who} was sent after ${later.who} was acknowledged, but stands before it: ${append.position} and ${later.position} of ${append.log}`,
        );
      if (later === null || append.ackedMs < later.ackedMs) later = append;
      above = append;
    }
  }
  return said;
}

/** What contradicts that all deliveries of a stream are pieces of one sequence, each without a hole. */
export function breaksOfPrefix(deliveries: readonly Delivery[]): readonly string[] {
  const said: string[] = [];
  for (const [stream, of] of groupBy(deliveries, (delivery) => delivery.stream)) {
    const sequence = new Map<number, { readonly offset: number; readonly text: string; readonly who: string }>();
    for (const { items, who } of of) {
      let last: number | null = null;
      for (const { seq, offset, text } of items) {
        if (last !== null && seq !== last + 1) said.push(`${who}: ${seq} after ${last} of ${stream}`);
        last = seq;
        const known = sequence.get(seq);
        if (known === undefined) sequence.set(seq, { offset, text, who });
        else if (known.offset !== offset || known.text !== text)
          said.push(`${who} and ${known.who} got different messages as ${seq} of ${stream}`);
      }
    }
    const inOrder = [...sequence].sort(([a], [b]) => a - b);
    for (const [index, [seq, { offset }]] of inOrder.entries()) {
      const before = inOrder[index - 1];
      if (before !== undefined && before[1].offset >= offset)
        said.push(`${seq} of ${stream} stands at ${offset}, and ${before[0]} at ${before[1].offset}`);
    }
  }
  return said;
}

/** What was acknowledged and is not in the log: each text counts as often as it was acknowledged. */
export function missingAppends(acked: readonly string[], held: readonly string[]): readonly string[] {
  const left = new Map<string, number>();
  for (const text of held) left.set(text, (left.get(text) ?? 0) + 1);
  return acked.filter((text) => {
    const count = left.get(text) ?? 0;
    left.set(text, count - 1);
    return count <= 0;
  });
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
