/** What a client got, read off its wire. Pure. */
import { formatEventId, formatStreamLabel, parseEventId } from '@throughline/protocol';
import type { EventId } from '@throughline/protocol';
import type { WireAnswer } from './wire.ts';

const BEYOND = 1_000_000;

/** The stream of an answer, by its first id that is one of ours. */
function streamOf({ items }: WireAnswer): EventId['stream'] | undefined {
  for (const { id } of items) {
    const stream = id === undefined ? undefined : parseEventId(id)?.stream;
    if (stream !== undefined) return stream;
  }
  return undefined;
}

/** The connections of the newest call of a tool: the POST and what resumed it, in order. */
export function connectionsOfCall(answers: readonly WireAnswer[]): readonly WireAnswer[] {
  const post = answers.findLast(({ method }) => method === 'tools/call');
  if (post === undefined) return [];
  const stream = streamOf(post);
  if (stream === undefined) return [post];
  const label = formatStreamLabel(stream);
  return answers.filter((answer) => {
    const own = streamOf(answer);
    return answer === post || (own !== undefined && formatStreamLabel(own) === label);
  });
}

/** The steps that came on these connections, as they came. */
export function stepsOn(connections: readonly WireAnswer[]): readonly number[] {
  return connections.flatMap(({ items }) =>
    items.flatMap(({ kind, data }) => {
      if (kind !== 'event' || data === '') return [];
      const { params } = JSON.parse(data) as { params?: { progress?: number } };
      return params?.progress === undefined ? [] : [params.progress];
    }),
  );
}

/**
 * Whether each connection went on exactly behind the cursor that the client named, to the last step. A client that names an
 * older cursor than its last is given again what came after it.
 */
export function isExactOn(connections: readonly WireAnswer[], steps: number): boolean {
  const isContinued = connections.every((connection) => {
    const before = Number(parseEventId(connection.lastEventId ?? '')?.seq ?? 0);
    return stepsOn([connection]).every((step, index) => step === before + 1 + index);
  });
  return isContinued && new Set(stepsOn(connections)).size === steps;
}

/** What the answer to `initialize` agreed on. */
export function agreedVersion(answers: readonly WireAnswer[]): string | undefined {
  const items = answers.findLast(({ method }) => method === 'initialize')?.items ?? [];
  for (const { kind, data } of items) {
    if (kind !== 'event' || data === '') continue;
    const { result } = JSON.parse(data) as { result?: { protocolVersion?: string } };
    if (result?.protocolVersion !== undefined) return result.protocolVersion;
  }
  return undefined;
}

/** Another cursor in the place of one of a call: of an event that was never there. Others stay as they are. */
export function beyondTheEnd(lastEventId: string): string {
  const cursor = parseEventId(lastEventId);
  if (cursor?.stream.kind !== 'request' || lastEventId.includes('.end.')) return lastEventId;
  return formatEventId({ ...cursor, offset: cursor.offset + BEYOND });
}
