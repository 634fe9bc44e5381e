/**
 * `Mcp-Session-Id`: `<epoch>.<partition>.<from>.<created>.<key>.<mac>`. Self-describing, so that every gateway checks a
 * session and its principal with no look-up. SPEC: SID-FORM, SID-MAC.
 */
import { fromBase64Url, hmacSha256, toBase64Url } from '#digest';
import { isEpoch } from './epoch.ts';
import type { Epoch } from './epoch.ts';
import { equalBytes } from './event-id.ts';
import { parseOffset, parsePartition } from './position.ts';
import type { Offset, Partition } from './position.ts';
import { encodeText } from './record.ts';

export const SESSION_KEY_BYTES = 16;
export const MAX_SESSION_ID_LENGTH = 128;
const MAC_BYTES = 16;

export interface SessionId {
  readonly epoch: Epoch;
  readonly partition: Partition;
  /** End of `events[partition]` when the session was created: nothing of the session lies before it. */
  readonly from: Offset;
  readonly createdMs: number;
  /** 16 random bytes in base64url: the Kafka record key. */
  readonly key: string;
}

/** What a session is bound to besides its own fields. */
export interface SessionBinding {
  readonly principal: string;
  readonly server: string;
}

/** @param random 16 random bytes. */
export function makeSessionKey(random: Uint8Array): string {
  if (random.length !== SESSION_KEY_BYTES)
    throw new TypeError(`makeSessionKey needs ${SESSION_KEY_BYTES} random bytes`);
  return toBase64Url(random);
}

function mac(body: string, binding: SessionBinding, secret: Uint8Array): Uint8Array {
  return hmacSha256(secret, encodeText(JSON.stringify([body, binding.principal, binding.server]))).slice(0, MAC_BYTES);
}

function formatBody(id: SessionId): string {
  return `${id.epoch}.${id.partition}.${id.from}.${id.createdMs}.${id.key}`;
}

export function signSessionId(id: SessionId, binding: SessionBinding, secret: Uint8Array): string {
  const body = formatBody(id);
  return `${body}.${toBase64Url(mac(body, binding, secret))}`;
}

/** Reads the fields without trusting them; `null` if the text has another form. Never throws. */
export function parseSessionId(text: string): { id: SessionId; mac: Uint8Array } | null {
  if (text.length > MAX_SESSION_ID_LENGTH) return null;
  const fields = text.split('.');
  if (fields.length !== 6) return null;
  const [epoch = '', partitionText = '', fromText = '', createdText = '', key = '', macText = ''] = fields;
  const partition = parsePartition(partitionText);
  const from = parseOffset(fromText);
  const createdMs = parseOffset(createdText);
  const macBytes = fromBase64Url(macText);
  if (!isEpoch(epoch) || partition === null || from === null || createdMs === null) return null;
  if (fromBase64Url(key)?.length !== SESSION_KEY_BYTES || macBytes?.length !== MAC_BYTES) return null;
  return { id: { epoch, partition, from, createdMs, key }, mac: macBytes };
}

/**
 * The session that `text` names, if one of `secrets` signed it for this principal and server; else `null`. The epoch is
 * the id's own: whether it is the current one is the caller's question. `secrets`: first signs, all verify.
 */
export function verifySessionId(
  text: string,
  binding: SessionBinding,
  secrets: readonly Uint8Array[],
): SessionId | null {
  const parsed = parseSessionId(text);
  if (parsed === null) return null;
  const body = formatBody(parsed.id);
  for (const secret of secrets) if (equalBytes(mac(body, binding, secret), parsed.mac)) return parsed.id;
  return null;
}
