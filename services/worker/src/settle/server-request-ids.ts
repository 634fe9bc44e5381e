/**
 * Ids of requests from the server to the client, namespaced by claim and instance, so that a rebuilt server never
 * reuses one and an answer to a former owner's request is known as such. Pure. SPEC: WRK-NAMESPACE.
 */
import { parseOffset } from '@throughline/protocol';
import type { JsonRpcId, Offset } from '@throughline/protocol';

/** What all of them begin with. */
export const WIRE_ID_PREFIX = 'tl-';

const FORM = /^tl-([0-9]+)-([0-9]+)-(n|s):(.*)$/s;
const PING_FORM = /^tl-[0-9]+-ping-[0-9]+$/;

/** @param instance number of the server instance under this claim. */
export function wireRequestId(claim: Offset, instance: number, id: JsonRpcId): string {
  return `tl-${claim}-${instance}-${typeof id === 'number' ? 'n' : 's'}:${id}`;
}

export interface ServerRequestId {
  readonly claim: Offset;
  readonly instance: number;
  readonly id: JsonRpcId;
}

/** Reads what {@link wireRequestId} wrote; `null` for anything else. */
export function parseWireRequestId(id: JsonRpcId | null): ServerRequestId | null {
  const match = typeof id === 'string' ? FORM.exec(id) : null;
  if (match === null) return null;
  const [, claimText = '', instanceText = '', kind, text = ''] = match;
  const claim = parseOffset(claimText);
  const instance = parseOffset(instanceText);
  if (claim === null || instance === null) return null;
  if (kind === 's') return { claim, instance, id: text };
  const number = Number(text);
  return text !== '' && Number.isFinite(number) ? { claim, instance, id: number } : null;
}

/** The id of a ping that an owner sends by itself; no server knows of it. */
export function pingId(claim: Offset, count: number): string {
  return `tl-${claim}-ping-${count}`;
}

/** Whether `id` is that of an owner's own ping, this one's or a former one's. */
export function isPingId(id: JsonRpcId | null): boolean {
  return typeof id === 'string' && PING_FORM.test(id);
}
