/** What a client got of one call, held against what it must have got. */
import { errorText } from '@throughline/log';
import { formatStreamLabel, parseEventId } from '@throughline/protocol';
import { checkStream } from '@throughline/testkit/processes';
import type { SseItem } from '@throughline/testkit/processes';

export interface CheckedRow {
  readonly check: string;
  readonly expected: string;
  readonly got: string;
  readonly isKept: boolean;
}

export interface CallSeen {
  readonly sessionId: string;
  readonly steps: number;
  /** Progress as the client's own callback got it. */
  readonly progress: readonly number[];
  readonly result: string;
  /** Every event of every answer, in the order of arrival. */
  readonly items: readonly SseItem[];
  /** The same stream as somebody got it who was never interrupted. */
  readonly observed: readonly SseItem[];
  /** Answers that streamed events of the call. */
  readonly connections: number;
}

/** Pure. */
export function judge(seen: CallSeen): readonly CheckedRow[] {
  const row = (check: string, expected: string, got: string): CheckedRow => ({
    ...{ check, expected, got },
    isKept: expected === got,
  });
  const all = Array.from({ length: seen.steps }, (_, index) => index + 1);
  const call = itemsOfCall(seen.items);
  const own = countMessages(seen.sessionId, call);
  const others = countMessages(seen.sessionId, seen.observed);
  return [
    row('progress, once each and in order', summarize(all), summarize(seen.progress)),
    row('result', `done ${seen.steps}`, seen.result),
    row('messages of the stream, ids and chain', `${seen.steps + 1} without a fault`, own),
    row('the same for an uninterrupted observer', `${seen.steps + 1} without a fault`, others),
    row(
      'client and observer',
      'equal',
      JSON.stringify(dataOf(call)) === JSON.stringify(dataOf(seen.observed)) ? 'equal' : 'differ',
    ),
    { ...row('connections of the call', '2 or more', String(seen.connections)), isKept: seen.connections >= 2 },
  ];
}

/** The events of the stream on which the first step came. */
export function itemsOfCall(items: readonly SseItem[]): readonly SseItem[] {
  const labelOf = ({ id }: SseItem): string | null => {
    const cursor = id === undefined ? null : parseEventId(id);
    return cursor === null ? null : formatStreamLabel(cursor.stream);
  };
  const first = items.find(({ data }) => data.includes('"progress":1,'));
  const label = first === undefined ? null : labelOf(first);
  return label === null ? [] : items.filter((item) => labelOf(item) === label);
}

function countMessages(sessionId: string, items: readonly SseItem[]): string {
  try {
    return `${checkStream(sessionId, items).length} without a fault`;
  } catch (error) {
    return errorText(error);
  }
}

function dataOf(items: readonly SseItem[]): readonly (readonly [string | undefined, string])[] {
  return items.filter(({ kind, data }) => kind === 'event' && data !== '').map(({ id, data }) => [id, data] as const);
}

/** `1 to 9` if that is what it is; else where it first is not. */
function summarize(numbers: readonly number[]): string {
  const wrong = numbers.findIndex((number, index) => number !== index + 1);
  if (wrong < 0) return `1 to ${numbers.length}`;
  return `${numbers.length}, and after ${numbers[wrong - 1] ?? 'the start'} comes ${numbers[wrong]}`;
}

export function formatRows(rows: readonly CheckedRow[]): string {
  const header = { check: 'check', expected: 'expected', got: 'got' };
  const width = (field: 'check' | 'expected' | 'got'): number =>
    Math.max(...[header, ...rows].map((row) => row[field].length));
  const line = (row: typeof header, verdict: string): string =>
    `  ${row.check.padEnd(width('check'))}  ${row.expected.padEnd(width('expected'))}  ${row.got.padEnd(width('got'))}  ${verdict}`;
  return [line(header, ''), ...rows.map((row) => line(row, row.isKept ? 'kept' : 'BROKEN'))].join('\n');
}
