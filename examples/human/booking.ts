/** A call of the tool `book` that a person answers: what it asks, what it answers, and how often it ran. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { within } from '@throughline/testkit/processes';
import { say } from '../story/tell-story.ts';
import type { Claim } from '../story/tell-story.ts';
import { textOf } from './person.ts';
import type { Person } from './person.ts';

export const BOOKING_SERVER = fileURLToPath(new URL('./server.ts', import.meta.url));
const QUESTIONS: readonly string[] = ['Who travels?', 'Which seat for Ada?'];
const ANSWERS = { name: 'Ada', seat: '4C' } as const;
const BOOKED = 'Ada sits on 4C.';

export interface Booking {
  /** The text of the result. */
  readonly booked: Promise<string>;
  /** How often the tool began. */
  runs(): number;
}

/** Calls the tool, answers its first form, and resolves with the second one open. `folder`: where the tool notes that it ran. */
export async function beginBooking(person: Person, folder: string): Promise<Booking> {
  const ledger = path.join(folder, 'runs.txt');
  writeFileSync(ledger, '');
  const call = person.client.callTool({ name: 'book', arguments: { ledger } }, { timeout: 120_000 });
  const booked = call.then((result) => textOf(result));
  // Whoever waits for it hears of it; until then it is no unhandled rejection.
  booked.catch(() => undefined);
  await person.form(1);
  person.answer(ANSWERS.name);
  await person.form(2);
  return { booked, runs: () => readFileSync(ledger, 'utf8').split('\n').filter(Boolean).length };
}

/** The person answers the form that is open: the call has to finish, and nothing may have been asked twice. */
export async function finishBooking(person: Person, { booked }: Booking, claim: Claim): Promise<void> {
  person.answer(ANSWERS.seat);
  const text = await within('the result', booked, 60_000);
  say(`   the call finishes: ${text}`);
  say('');
  claim(`the call was answered: ${BOOKED}`, text === BOOKED);
  claim(
    `the person was asked once: ${QUESTIONS.join(' ')}`,
    JSON.stringify(person.shown) === JSON.stringify(QUESTIONS),
  );
}
