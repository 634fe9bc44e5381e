/**
 * The secret of an embedded log: made on first start, kept in the log's `meta`, so that every process on the log signs
 * and verifies alike and nobody has to configure one.
 */
import type { Log, Random } from '@throughline/log';
import { META } from '@throughline/log';
import type { Offset } from '@throughline/protocol';
import { decodeText, encodeText, fromBase64Url, META_KEY, toBase64Url } from '@throughline/protocol';
import { StartError } from './faults.ts';

const SECRET_BYTES = 32;
const CANDIDATE_BYTES = 9;
const READ_BYTES = 1024 * 1024;

/** One key a candidate, since compaction keeps the last record of a key and the first one has to stay in force. */
const KEY_PREFIX = `${META_KEY.secret}/`;

/**
 * Reads the secret, or makes one. Of several processes that start at once each may append a candidate; all take the
 * one with the lowest offset, and nobody appends once there is one, so the choice never changes.
 * Errors: those of `read` and `append`; {@link StartError} if what stands there is no secret.
 */
export async function readEmbeddedSecret(log: Log, random: Random): Promise<Uint8Array> {
  const found = await findFirstSecret(log);
  if (found !== undefined) return found;
  const key = encodeText(KEY_PREFIX + toBase64Url(random.bytes(CANDIDATE_BYTES)));
  const value = encodeText(toBase64Url(random.bytes(SECRET_BYTES)));
  await log.append(META, [{ key, value, headers: [] }]);
  const made = await findFirstSecret(log);
  if (made === undefined)
    throw new StartError('The log took a new signing secret and does not give it back. Use another log file.');
  return made;
}

/** The one that is there already. Errors: those of `read`; {@link StartError} if what stands there is no secret. */
export async function findFirstSecret(log: Log): Promise<Uint8Array | undefined> {
  const { start, end } = await log.bounds(META);
  let position: Offset = start;
  while (position < end) {
    const batch = await log.read(META, position, { maxBytes: READ_BYTES });
    for (const { key, value } of batch.records) {
      if (key === null || value === null || !decodeText(key).startsWith(KEY_PREFIX)) continue;
      const secret = fromBase64Url(decodeText(value));
      if (secret !== null && secret.length >= SECRET_BYTES) return secret;
      throw new StartError(
        'The signing secret kept in the log is damaged. Set THROUGHLINE_SECRETS_FILE, or use another log file.',
      );
    }
    if (batch.next <= position) break;
    position = batch.next;
  }
  return undefined;
}
