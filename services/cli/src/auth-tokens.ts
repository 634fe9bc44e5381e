/** Bearer tokens and the secrets that sign session ids: what their files hold. */
import { createHash, randomBytes } from 'node:crypto';
import type { GatewayConfig } from '@throughline/gateway/config';

type Tokens = NonNullable<GatewayConfig['tokens']>;

const LEAST_SECRET_BYTES = 32;

/** One `<name>:<sha256 hex>` a line; empty lines and lines that begin with # are skipped. Problems name their line. */
export function parseTokens(text: string): { readonly tokens: Tokens; readonly problems: readonly string[] } {
  const tokens: Tokens = [];
  const problems: string[] = [];
  for (const { line, number } of contentLines(text)) {
    const match = /^(?<principal>[^:\s]{1,128}):(?<sha256>[0-9a-fA-F]{64})$/.exec(line);
    const principal = match?.groups?.['principal'];
    const sha256 = match?.groups?.['sha256']?.toLowerCase();
    if (principal === undefined || sha256 === undefined)
      problems.push(
        `line ${number} is not <name>:<SHA-256 of the token in hex>; make it with \`throughline secret hash\``,
      );
    else if (tokens.some((token) => token.sha256 === sha256)) problems.push(`line ${number} repeats a token`);
    else tokens.push({ principal, sha256 });
  }
  if (tokens.length === 0 && problems.length === 0) problems.push('it holds no token, so nobody could call');
  return { tokens, problems };
}

/** Problems never hold the secret. */
export function parseSecrets(items: readonly string[]): {
  readonly secrets: readonly Uint8Array[];
  readonly problems: readonly string[];
} {
  const secrets: Uint8Array[] = [];
  const problems: string[] = [];
  for (const [index, item] of items.entries()) {
    const bytes = /^[A-Za-z0-9_-]+$/.test(item) ? Buffer.from(item, 'base64url') : Buffer.alloc(0);
    if (bytes.length >= LEAST_SECRET_BYTES) secrets.push(new Uint8Array(bytes));
    else
      problems.push(
        `secret ${index + 1} is not ${LEAST_SECRET_BYTES} bytes or more in base64url; make one with \`throughline secret new\``,
      );
  }
  if (items.length === 0) problems.push('it holds no secret; make one with `throughline secret new`');
  return { secrets, problems };
}

export function contentLines(text: string): { readonly line: string; readonly number: number }[] {
  return text
    .split(/\r?\n/)
    .map((line, index) => ({ line: line.trim(), number: index + 1 }))
    .filter(({ line }) => line !== '' && !line.startsWith('#'));
}

/** A fresh secret as `parseSecrets` reads it. */
export function makeSecret(): string {
  return randomBytes(LEAST_SECRET_BYTES).toString('base64url');
}

export function hashToken(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex');
}
