/** The public keys of an issuer from a file: a JWK set, one JWK, or keys and certificates in PEM. */
import { createPublicKey } from 'node:crypto';

export type PublicJwk = Record<string, unknown>;

const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^-]+-----END \1-----/g;

/** Problems never hold what stands in the file. */
export function parseKeys(text: string): { readonly keys: readonly PublicJwk[]; readonly problems: readonly string[] } {
  return text.includes('-----BEGIN') ? parsePem(text) : parseJwks(text);
}

function parsePem(text: string): ReturnType<typeof parseKeys> {
  const keys: PublicJwk[] = [];
  const problems: string[] = [];
  for (const [block, label = ''] of text.matchAll(PEM_BLOCK)) {
    // Node would make the public half of it: whoever put it here should know that it is here.
    if (label.includes('PRIVATE')) problems.push('it holds a private key; write only the public one');
    else
      try {
        keys.push({ ...createPublicKey(block).export({ format: 'jwk' }) });
      } catch {
        problems.push(`it holds a ${label.toLowerCase()} that cannot be read`);
      }
  }
  if (keys.length === 0 && problems.length === 0) problems.push('it holds no whole key in PEM');
  return { keys, problems };
}

function parseJwks(text: string): ReturnType<typeof parseKeys> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { keys: [], problems: ['it is neither PEM nor JSON; write a JWK set, or public keys in PEM'] };
  }
  if (!isRecord(value)) return { keys: [], problems: ['it holds no JWK set'] };
  const list = 'keys' in value ? value['keys'] : [value];
  if (!Array.isArray(list) || list.length === 0 || !list.every(isRecord))
    return { keys: [], problems: ['it holds no JWK set'] };
  return { keys: list, problems: [] };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
