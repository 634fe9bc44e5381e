/** How records name a principal: an HMAC, so that the log shows whose a record is to nobody who does not know the secret. */
import { encodeText, hmacSha256, toBase64Url } from '@throughline/protocol';

const CACHE_LIMIT = 1000;
const cache = new WeakMap<readonly Uint8Array[], Map<string, string>>();

export function principalTag(secrets: readonly Uint8Array[], principal: string): string {
  let tags = cache.get(secrets);
  if (tags === undefined) {
    tags = new Map();
    cache.set(secrets, tags);
  }
  let tag = tags.get(principal);
  if (tag === undefined) {
    const [secret] = secrets;
    if (secret === undefined) throw new TypeError('no secret');
    tag = toBase64Url(hmacSha256(secret, encodeText(`principal\n${principal}`)).slice(0, 16));
    if (tags.size >= CACHE_LIMIT) tags.clear();
    tags.set(principal, tag);
  }
  return tag;
}
