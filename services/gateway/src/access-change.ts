/** What may change of who may call while a gateway runs. SPEC: AUTH-REVOKED. */
import type { IssuerConfig } from './auth/auth-config.ts';
import type { GatewayConfig } from './config.ts';

export type AccessChange =
  | { readonly kind: 'tokens'; readonly tokens: NonNullable<GatewayConfig['tokens']> }
  /** Of an issuer whose keys the configuration holds. */
  | { readonly kind: 'keys'; readonly issuer: string; readonly keys: NonNullable<IssuerConfig['keys']> }
  /** The first signs, all verify. */
  | { readonly kind: 'secrets'; readonly secrets: readonly Uint8Array[] };
