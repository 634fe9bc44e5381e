/** The options of this project's own commands: each says what it takes, and reads it. Pure. */
import { didYouMean } from 'throughline/nearest-name';

export type Reading<T> = { readonly value: T } | { readonly wrong: string };

export interface Option<T> {
  /** What stands after the option in the usage text, such as `<count>`; `null`: nothing, it is there or not. */
  readonly takes: string | null;
  readonly says: string;
  /** `given` is what the command line gives, in order; empty: the option is absent, which is never wrong. */
  read(given: readonly string[]): Reading<T>;
}

export interface NumberRule<A> {
  readonly takes: string;
  readonly says: string;
  readonly from: number;
  readonly to?: number;
  readonly absent: A;
}

export function flag(says: string): Option<boolean> {
  return { takes: null, says, read: (given) => ({ value: given.length > 0 }) };
}

export function text<A>(takes: string, says: string, absent: A): Option<string | A> {
  return {
    takes,
    says,
    read(given) {
      const value = given.at(-1);
      if (value === '') return { wrong: `must be ${takes}, not empty` };
      return { value: value ?? absent };
    },
  };
}

/** Digits only: neither a fraction nor an exponent is taken. */
export function wholeNumber<A>(rule: NumberRule<A>): Option<number | A> {
  return numberThat(rule, 'a whole number', (given) => (/^-?\d+$/.test(given) ? Number(given) : NaN));
}

/** Fractions are taken, and `from` itself is not: above it. */
export function numberAbove<A>(rule: NumberRule<A>): Option<number | A> {
  return numberThat(rule, 'a number above', (given) => {
    const value = /^\d+(\.\d+)?$/.test(given) ? Number(given) : NaN;
    return value > rule.from ? value : NaN;
  });
}

/** Separated by commas, or the option several times, or both. */
export function names<T extends string>(takes: string, says: string, known: readonly T[]): Option<readonly T[]> {
  const isKnown = (name: string): name is T => (known as readonly string[]).includes(name);
  return {
    takes,
    says: `${says}: ${known.join(', ')}`,
    read(given) {
      const wanted = given.flatMap((each) => each.split(',')).map((name) => name.trim());
      const unknown = wanted.find((name) => !isKnown(name));
      if (unknown === undefined) return { value: wanted.filter(isKnown) };
      return { wrong: `there is no "${unknown}"; there are: ${known.join(', ')}.${didYouMean(unknown, known)}` };
    },
  };
}

/** What its fields mean is for the reader of the option to know. */
export function jsonObject(says: string, such: string): Option<object> {
  return {
    takes: '<JSON>',
    says,
    read(given) {
      const value = parseJson(given.at(-1) ?? '{}');
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value };
      return { wrong: `must be a JSON object, such as ${such}` };
    },
  };
}

function numberThat<A>(rule: NumberRule<A>, kind: string, parse: (given: string) => number): Option<number | A> {
  const { takes, says, from, to = Number.MAX_SAFE_INTEGER, absent } = rule;
  const upTo = rule.to === undefined ? '' : `, at most ${rule.to}`;
  const what = kind.endsWith('above') ? `${kind} ${from}${upTo}` : `${kind} from ${from}${upTo}`;
  return {
    takes,
    says,
    read(given) {
      const last = given.at(-1);
      if (last === undefined) return { value: absent };
      const value = parse(last);
      return value >= from && value <= to ? { value } : { wrong: `must be ${what}` };
    },
  };
}

function parseJson(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch {
    return undefined;
  }
}
