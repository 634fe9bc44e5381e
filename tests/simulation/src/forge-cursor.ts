/** Makes of a cursor that a server gave one that none gave, and reads how it was refused. */
import type { Chance } from './chance.ts';
import type { Forgery } from './records-of-run.ts';

const FORGERIES = ['cut', 'foreign', 'stream', 'partition', 'epoch', 'offset', 'digit', 'session'] as const;
/** Where the checksum of the anchor stands, from the end: the chain behind it is the client's own affair. */
const CHECKSUM_AT = -16;

/** @param foreign a cursor of another session; `null`: there is none. The result may be the honest one. */
export function forgeCursor(honest: string, foreign: string | null, chance: Chance): { kind: Forgery; cursor: string } {
  const fields = honest.split('.');
  const kind = chance.pick<Forgery>(FORGERIES);
  const put = (index: number, value: string | number): string =>
    fields.map((field, at) => (at === index ? String(value) : field)).join('.');
  switch (kind) {
    case 'cut':
      return { kind, cursor: honest.slice(0, chance.whole(1, honest.length - 1)) };
    case 'foreign':
      return foreign === null ? { kind: 'cut', cursor: honest.slice(1, -1) } : { kind, cursor: foreign };
    case 'stream':
      return {
        kind,
        cursor: honest.replace(/\.([rs])\d+/, (_match, letter: string) => `.${letter}${chance.below(1000)}`),
      };
    case 'partition':
      return { kind, cursor: put(1, Number(fields[1]) + 1) };
    case 'epoch': {
      const epoch = fields[0] ?? '';
      return { kind, cursor: put(0, epoch.slice(0, -1) + (epoch.endsWith('a') ? 'b' : 'a')) };
    }
    case 'offset':
      return { kind, cursor: put(2, chance.below(5000)) };
    case 'digit':
      return { kind, cursor: `${honest.slice(0, CHECKSUM_AT)}AAA${honest.slice(CHECKSUM_AT + 3)}` };
    case 'session':
      return { kind, cursor: honest };
  }
}

/** Reason, or else code, of an error body; `null` if it is none. */
export function refusalOf(body: string): string | null {
  try {
    const { error } = JSON.parse(body) as { error?: { data?: { reason?: string; code?: string } } };
    return error?.data?.reason ?? error?.data?.code ?? null;
  } catch {
    return null;
  }
}
