/** What a case found, in a form that is printed, written and compared alike. */

export interface Row {
  readonly what: string;
  /** With its unit, for people: `1.42 ms`. */
  readonly ours: string;
  /** What it is measured against in the same run; `''`: nothing. */
  readonly against: string;
  /** `ours / against`; `null`: the target is absolute, or there is none. */
  readonly ratio: number | null;
  /** In words: `≤ 1.6 ×`; `''`: a figure beside the others. */
  readonly target: string;
  /** `null`: there is no target. */
  readonly isMet: boolean | null;
}

export interface CaseResult {
  readonly name: string;
  /** Payload, acks, processes, counts: what somebody needs to repeat it. */
  readonly setup: string;
  readonly rows: readonly Row[];
}

export interface BenchCase {
  readonly name: string;
  run(): Promise<CaseResult>;
}

export function ratioRow(
  what: string,
  ours: number,
  against: number,
  unit: string,
  target: { readonly most?: number; readonly least?: number },
): Row {
  const ratio = ours / against;
  const text = target.most === undefined ? `≥ ${target.least ?? ''} ×` : `≤ ${target.most} ×`;
  const isMet = target.most === undefined ? ratio >= (target.least ?? 0) : ratio <= target.most;
  return { what, ours: withUnit(ours, unit), against: withUnit(against, unit), ratio, target: text, isMet };
}

export function limitRow(what: string, ours: number, unit: string, most: number): Row {
  return {
    what,
    ours: withUnit(ours, unit),
    against: '',
    ratio: null,
    target: `≤ ${withUnit(most, unit)}`,
    isMet: ours <= most,
  };
}

export function plainRow(what: string, ours: number, unit: string): Row {
  return { what, ours: withUnit(ours, unit), against: '', ratio: null, target: '', isMet: null };
}

function withUnit(value: number, unit: string): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(Number.isInteger(value) ? 0 : digits)} ${unit}`.trim();
}
