/** A login as text, for a file: what was registered, and the tokens. SPEC: CONNECT-LOGIN-KEPT. */
import { z } from 'zod';

/** What may stand in a header. */
const TOKEN = z.string().regex(/^[\x21-\x7e]+$/);

const TOKENS = z.object({
  access_token: TOKEN,
  refresh_token: z.string().optional(),
  token_type: z.string(),
  scope: z.string().optional(),
});

const RECORD = z.object({
  v: z.literal(1),
  /** Who has given it; what is kept is sent to nobody else. */
  issuer: z.string(),
  authorizationServerUrl: z.string(),
  /** The RFC 8707 indicator that the tokens are for. */
  resource: z.string().nullable(),
  client: z.looseObject({ client_id: z.string(), client_secret: z.string().optional() }).nullable(),
  /** The port of the redirect URI with which the client was registered. */
  redirectPort: z.number().int().min(1).max(65535).nullable(),
  tokens: TOKENS.nullable(),
});

export type LoginRecord = z.output<typeof RECORD>;
export type LoginTokens = z.output<typeof TOKENS>;

export function formatLogin(record: LoginRecord): string {
  return JSON.stringify(record);
}

/** `null`: it is none that {@link formatLogin} has written. */
export function parseLogin(text: string): LoginRecord | null {
  try {
    return RECORD.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}

/** Throws a `ZodError` for tokens that cannot be used. */
export function readTokens(tokens: unknown): LoginTokens {
  return TOKENS.parse(tokens);
}
