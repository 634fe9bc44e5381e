/** How a story of this folder speaks and ends: claims as they are kept or broken, a verdict, and exit code 1 if one was broken. */
import process from 'node:process';

/** Says whether something that the story promises holds. */
export type Claim = (what: string, holds: boolean) => void;

export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

export interface Verdicts {
  readonly kept: string;
  readonly broken: string;
}

/**
 * Runs a story to its end and says the verdict. `tell` has to claim something; what it throws breaks the story. The exit
 * code of the process is set, so that what `tell` started can be ended first.
 */
export async function tellStory(verdicts: Verdicts, tell: (claim: Claim) => Promise<void>): Promise<void> {
  const claims: boolean[] = [];
  const claim: Claim = (what, holds) => {
    claims.push(holds);
    say(`   ${holds ? 'kept' : 'BROKEN'}: ${what}`);
  };
  try {
    await tell(claim);
  } catch (error) {
    claims.push(false);
    say(`\n${error instanceof Error ? error.message : String(error)}`);
  }
  const isKept = claims.length > 0 && claims.every(Boolean);
  say(`\nVERDICT: ${isKept ? `kept. ${verdicts.kept}` : `broken. ${verdicts.broken}`}`);
  process.exitCode = isKept ? 0 : 1;
}
