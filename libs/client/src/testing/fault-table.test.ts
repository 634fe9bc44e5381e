import { describe, expect, it } from 'vitest';
import { DIALECTS, FAULT_NAMES, FAULT_TABLE, rightVerdicts } from './fault-table.ts';
import type { FaultRow } from './fault-table.ts';
import { misbehaviourOf } from './misbehaviours.ts';

const CLASSES: Record<string, readonly string[]> = {
  harmless: ['bom', 'crlf', 'cut-utf8', 'no-final-newline', 'repeated-boundary', 'retry-directive'],
  'must-be-refused': [
    'altered-boundary',
    'altered-payload',
    'another-session',
    'another-stream',
    'answer-on-wrong-stream',
    'epoch-changed',
    'gap-continuous-ids',
    'gap-in-ids',
    'post-404',
    'redirect-other-origin',
    'reordered',
    'replay-from-zero',
    'session-id-changed',
    'session-resurrected',
    'status-404',
  ],
  'transport-error': [
    'dropped-twice',
    'empty-200',
    'html-page',
    'post-202',
    'post-401',
    'post-503',
    'post-empty-200',
    'post-html-page',
    'redirect-same-origin',
    'silent-stream',
    'status-204',
    'status-401',
    'status-405',
    'status-409',
    'status-503',
    'truncated-utf8',
  ],
};

describe('the table of faults', () => {
  it('[LIAR-TABLE] holds these faults, each in one class', () => {
    const found = Object.keys(CLASSES).map((name) => [
      name,
      FAULT_NAMES.filter((fault) => FAULT_TABLE[fault].class === name).sort(),
    ]);
    expect(Object.fromEntries(found)).toEqual(CLASSES);
    expect(FAULT_NAMES).toHaveLength(37);
  });

  it.each(FAULT_NAMES)('[LIAR-TABLE] %s is done where its row says, and its words are sentences', (fault) => {
    const row: FaultRow = FAULT_TABLE[fault];
    expect(misbehaviourOf(fault)?.place).toBe(row.place);
    for (const words of [row.does, row.correct]) expect(words).toMatch(/^[A-Z].*\.$/);
    for (const words of [row.does, row.correct]) expect(words).not.toMatch(/[|\n]/);
    expect(row.provable).toContain('throughline');
  });

  it('[LIAR-TABLE] a fault that must be refused is never right when it is taken in silence', () => {
    for (const fault of FAULT_NAMES)
      for (const dialect of DIALECTS) {
        const right = rightVerdicts(fault, dialect);
        expect(right).not.toContain('fooled');
        expect(right).not.toContain('hangs');
        expect(right).not.toContain('ran-twice');
        expect(right).not.toContain('hasty');
        if (dialect === 'throughline') expect(right).not.toContain('unproven');
      }
  });

  it.each([
    ['gap-continuous-ids', 'throughline', ['refused', 'failed']],
    ['gap-continuous-ids', 'numbered', ['refused', 'failed', 'unproven']],
    ['gap-in-ids', 'numbered', ['refused', 'failed']],
    ['gap-in-ids', 'opaque', ['refused', 'failed', 'unproven']],
    ['altered-boundary', 'opaque', ['refused', 'failed']],
    ['repeated-boundary', 'throughline', ['exact']],
    ['repeated-boundary', 'opaque', ['exact', 'refused']],
    ['post-empty-200', 'opaque', ['failed', 'refused', 'exact']],
  ] as const)('[LIAR-TABLE] of %s in dialect %s %j are right', (fault, dialect, right) => {
    expect(rightVerdicts(fault, dialect)).toEqual(right);
  });
});
