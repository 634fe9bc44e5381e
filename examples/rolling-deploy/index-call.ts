/** A call of the tool `index`, whose pages come in as the story wants it: it lasts as long as the story does. */
import { fileURLToPath } from 'node:url';
import type { Client } from '@modelcontextprotocol/client';
import { waitUntil, within } from '@throughline/testkit/processes';
import { textOf } from '../human/person.ts';
import { indexedPages, releasePages } from './pages.ts';

export const INDEX_SERVER = fileURLToPath(new URL('./server.ts', import.meta.url));

const CALL_MS = 300_000;
const PHASE_MS = 60_000;

export interface IndexCall {
  /** The steps of progress that the client was told, as they came. */
  readonly steps: readonly number[];
  /** All steps that there are, in order. */
  readonly expected: readonly number[];
  /** Lets more pages come in, and waits until the first of them is done: the others are under way. */
  nextPages(): Promise<void>;
  /** The text of the result, once all pages were let in. */
  finish(): Promise<string>;
  /** The processes that did the work, in order. */
  processes(): readonly number[];
}

/** @param phases how often {@link IndexCall.nextPages} will be asked for. */
export function beginIndexing(
  client: Client,
  folder: string,
  { phases, pagesEach }: { readonly phases: number; readonly pagesEach: number },
): IndexCall {
  const pages = phases * pagesEach;
  const steps: number[] = [];
  let released = 0;
  let failure: unknown = null;
  const call = client.callTool(
    { name: 'index', arguments: { folder, pages } },
    { timeout: CALL_MS, onprogress: ({ progress }) => void steps.push(progress) },
  );
  call.catch((error: unknown) => {
    failure = error;
  });
  return {
    steps,
    expected: Array.from({ length: pages }, (_, index) => index + 1),
    async nextPages() {
      const before = released;
      released = Math.min(pages, released + pagesEach);
      releasePages(folder, released);
      await waitUntil(`page ${before + 1}`, () => steps.length > before || failure !== null, PHASE_MS);
      if (failure !== null) throw failure as Error;
    },
    finish: async () => textOf(await within('the end of the call', call, PHASE_MS)),
    processes: () => [...new Set(indexedPages(folder).map(({ pid }) => pid))],
  };
}
