import { describe, expect, it } from 'vitest';
import { failuresOf, seedGroups } from './src/lane.ts';

describe('a simulated run under faults', () => {
  it.each(seedGroups(1, 2))(
    '[SIM-NO-GAP][SIM-NO-REPEAT][SIM-CHAIN][SIM-SAME][SIM-LOG][SIM-SESSION][SIM-NEWEST][SIM-REFUSED][SIM-GONE][SIM-ENDS][SIM-ONCE][SIM-ANSWER][SIM-CAUSE][SIM-LIVE][SIM-NO-BUGS][SIM-BREAK] keeps every promise, seeds $name',
    { timeout: 600_000 },
    async ({ seeds }) => {
      expect(await failuresOf(seeds), 'failing seeds').toBe('');
    },
  );
});
