/** The admin port of a process: of the gateway, or of a worker that has no other. */
import type { Clock } from '@throughline/log';
import { isAllowedAdminHost } from '../admission.ts';
import type { AdminOptions } from './admin.ts';
import { createAdminListener } from './admin.ts';
import { listen } from './listen.ts';
import type { Listening } from './listen.ts';

const ADMIN_SOCKETS = 100;

export interface StartAdminOptions extends Omit<AdminOptions, 'isAllowedHost'> {
  readonly clock: Clock;
  /** Names that are accepted in `Host` besides IP addresses and names without a dot. Default: see `GW-ADMIN-HOST`. */
  readonly allowedHosts?: readonly string[] | null;
  onError(error: Error): void;
}

/** Serves `/livez`, `/readyz` and `/metrics`. Errors: `ListenError`. */
export async function startAdmin(
  address: { readonly host: string; readonly port: number },
  { clock, onError, allowedHosts = null, ...options }: StartAdminOptions,
): Promise<Listening> {
  return await listen(
    { ...address, flag: '--admin', clock, maxSockets: ADMIN_SOCKETS, onError },
    createAdminListener({
      ...options,
      isAllowedHost: (host) => isAllowedAdminHost({ listen: address, allowedHosts }, host),
    }),
  );
}
