import { afterAll, describe, expect, it } from 'vitest';
import { failuresOf, seedGroups } from './src/lane.ts';
import { createSeedPool } from './src/seed-pool.ts';

const pool = createSeedPool({ jobs: 1 });
afterAll(() => {
  pool.stop();
});

describe('a simulated run under faults', () => {
  it.each(seedGroups(1, 2))(
    '[SIM-NO-GAP][SIM-NO-REPEAT][SIM-CHAIN][SIM-SAME][SIM-LOG][SIM-SESSION][SIM-NEWEST][SIM-REFUSED][SIM-GONE][SIM-ENDS][SIM-ONCE][SIM-ANSWER][SIM-CAUSE][SIM-LIVE][SIM-NO-BUGS][SIM-BREAK][SIM-LINEAR][SIM-PRODUCED] keeps every promise, seeds $name',
    { timeout: 1_800_000 },
    async ({ seeds }) => {
      expect(await failuresOf(pool, seeds), 'failing seeds').toBe('');
    },
  );
});
