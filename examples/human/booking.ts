/** A call of the tool `book` that a person answers: what it asks, what it answers, and how often it ran. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { textOf } from './person.ts';
import type { Person } from './person.ts';

export const BOOKING_SERVER = fileURLToPath(new URL('./server.ts', import.meta.url));
export const QUESTIONS: readonly string[] = ['Who travels?', 'Which seat for Ada?'];
export const ANSWERS = { name: 'Ada', seat: '4C' } as const;
export const BOOKED = 'Ada sits on 4C.';

export interface Booking {
  /** The text of the result. */
  readonly booked: Promise<string>;
  /** How often the tool began. */
  runs(): number;
}

/** @param folder where the tool notes that it ran. */
export function book({ client }: Person, folder: string): Booking {
  const ledger = path.join(folder, 'runs.txt');
  writeFileSync(ledger, '');
  const call = client.callTool({ name: 'book', arguments: { ledger } }, { timeout: 120_000 });
  const booked = call.then((result) => textOf(result));
  // Whoever waits for it hears of it; until then it is no unhandled rejection.
  booked.catch(() => undefined);
  return { booked, runs: () => readFileSync(ledger, 'utf8').split('\n').filter(Boolean).length };
}
