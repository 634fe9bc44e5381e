/** The attachment: the record by which a connection takes a stream. Newest wins, in log order, on any replica. SPEC: GW-TAKEOVER. */
import { EVENT_TYPE, formatTarget, makeRecord, toBase64Url } from '@throughline/protocol';
import type { Offset, StreamTarget } from '@throughline/protocol';
import { appendForClient } from './context.ts';
import type { GatewayContext, SessionRef } from './context.ts';

/** Unique to one connection. */
export function makeAttachmentName(context: GatewayContext): string {
  return toBase64Url(context.random.bytes(9));
}

/** Its acknowledged offset. Refusals: those of {@link appendForClient}. */
export async function attach(
  context: GatewayContext,
  session: SessionRef,
  stream: StreamTarget,
  attachment: string,
): Promise<Offset> {
  const to = { topic: 'events', partition: session.id.partition } as const;
  const record = makeRecord(EVENT_TYPE.attached, session.id.key, null, { stream: formatTarget(stream), attachment });
  const [offset] = await appendForClient(context, to, [record]);
  if (offset === undefined) throw new TypeError('an append of one record returned no offset');
  return offset;
}
