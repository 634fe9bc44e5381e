import { describe, expect, it } from 'vitest';
import { BatchTable, isComplete } from './batch-table.ts';

describe('batches', () => {
  it('[WRK-BATCH-END] are complete when all members were seen and all requests answered', () => {
    const table = new BatchTable();
    const batch = table.see('k', 10, { index: 0, count: 2 }, false, false);
    batch.requests++;
    batch.answered++;
    expect([isComplete(batch), table.close(batch)]).toEqual([false, false]);
    expect(table.see('k', 11, { index: 1, count: 2 }, false, false)).toBe(batch);
    expect([isComplete(batch), table.close(batch)]).toEqual([true, true]);
  });

  it('[WRK-BATCH-END] whose members are followed by another record are waited for no longer', () => {
    const table = new BatchTable();
    const batch = table.see('k', 10, { index: 0, count: 3 }, false, false);
    batch.requests++;
    expect(table.broken(10)).toEqual([]);
    expect(table.broken(null)).toEqual([batch]);
    expect(isComplete(batch)).toBe(false);
    batch.answered++;
    expect([isComplete(batch), table.broken(null)]).toEqual([true, []]);
  });

  it('[WRK-BATCH-END] were finished by a former owner only if all members were', () => {
    const table = new BatchTable();
    const batch = table.see('k', 10, { index: 0, count: 2 }, true, false);
    expect(batch.isPast).toBe(true);
    table.see('k', 11, { index: 1, count: 2 }, false, false);
    expect(batch.isPast).toBe(false);
  });
});
