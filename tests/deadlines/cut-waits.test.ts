/** Each wait of a gateway and a worker on their log and their host hangs once, in each way. See src/cutter.ts. */
import process from 'node:process';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCut } from './src/cut-run.ts';
import type { CutRun } from './src/cut-run.ts';
import { HANGS } from './src/cutter.ts';
import type { Hang } from './src/cutter.ts';

/** Every wait hangs in two ways for every change, in all of them in the deep lane. */
const IS_DEEP = process.env['DEEP'] === '1';
const TIMEOUT_MS = 300_000;

let undisturbed: CutRun;
beforeAll(async () => {
  undisturbed = await runCut(null);
}, TIMEOUT_MS);

/** The waits that hang in this way here: in the change lane each wait is the turn of two of them. */
function turns(hang: Hang): number[] {
  const index = HANGS.indexOf(hang);
  const numbers = undisturbed.waits.map((_wait, before) => before + 1);
  return numbers.filter((number) => IS_DEEP || number % 3 === index % 3);
}

describe('a wait that hangs', () => {
  it('[WAIT-COUNT] the waits are found by counting: an undisturbed run asks for everything that the ports have', () => {
    expect(undisturbed.faults).toEqual([]);
    const kinds = new Set(undisturbed.waits);
    for (const wait of [
      'gateway append inbound',
      'gateway append events',
      'gateway append meta',
      'gateway bounds events',
      'gateway read events',
      'gateway read meta',
      'gateway read sessions',
      'worker append events',
      'worker append meta',
      'worker append sessions',
      'worker bounds events',
      'worker bounds inbound',
      'worker bounds meta',
      'worker bounds sessions',
      'worker close of the server',
      'worker commit',
      'worker deliver answer',
      'worker deliver initialize',
      'worker deliver notifications/cancelled',
      'worker deliver notifications/initialized',
      'worker deliver tools/call',
      'worker deliver tools/list',
      'worker join',
      'worker leave',
      'worker open',
      'worker read events',
      'worker read inbound',
      'worker read meta',
      'worker read sessions',
    ])
      expect(kinds).toContain(wait);
    expect(undisturbed.steps.map(({ name, outcome }) => [name, outcome?.kind])).toEqual([
      ['initialize', 'result'],
      ['initialized', 'done'],
      ['listen', 'done'],
      ['list', 'result'],
      ['call with progress', 'result'],
      ['call that asks', 'result'],
      ['call that is cancelled', 'done'],
      ['call that is resumed', 'result'],
      ['delete', 'done'],
    ]);
  });

  it.each([
    ['lost', 'is never done nor answered'],
    ['unheard', 'is done and never answered'],
    ['until-abort', 'ends only with its signal'],
    ['late', 'is done and answered long after everybody gave up'],
  ] as const)(
    '[WAIT-CALL] [WAIT-SAYS] [WAIT-STOP] [WAIT-START] %s: wherever one thing %s, every call ends in time and says whether it may have run, the next client is served, and both processes stop',
    async (hang, _what) => {
      expect(await faultsOf(hang)).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    '[WAIT-CALL] [WAIT-SAYS] wherever nothing at all is answered for a minute, every call ends in time after it, and the next client is served',
    async () => {
      expect(await faultsOf('outage')).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    '[WAIT-STOP] wherever nothing is answered any more, gateway and worker stop within their bounds, and leave nothing behind',
    async () => {
      expect(await faultsOf('for-good')).toEqual([]);
    },
    TIMEOUT_MS,
  );
});

async function faultsOf(hang: Hang): Promise<string[]> {
  const faults: string[] = [];
  for (const at of turns(hang)) {
    const run = await runCut({ at, hang });
    faults.push(...run.faults.map((fault) => `${hang} ${at} (${undisturbed.waits[at - 1] ?? ''}): ${fault}`));
  }
  return faults;
}
