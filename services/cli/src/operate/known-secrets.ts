/** The secrets that sign session ids, where a command can see them. Nothing is made here. */
import { existsSync } from 'node:fs';
import type { Log } from '@throughline/log';
import { findFirstSecret } from '../embedded-secret.ts';
import { readLocalSecret } from '../local-secret.ts';
import type { Settings } from '../settings.ts';

export interface KnownSecrets {
  readonly secrets: readonly Uint8Array[];
  readonly from: 'configuration' | 'log' | 'local-file' | 'nowhere';
}

/** Errors: those of `Log.read`; `StartError` if what should be a secret is none. */
export async function findSecrets(settings: Settings, log: Log): Promise<KnownSecrets> {
  if (settings.secrets !== null) return { secrets: settings.secrets, from: 'configuration' };
  if (settings.log.location.kind !== 'kafka') {
    const secret = await findFirstSecret(log);
    return secret === undefined ? NO_SECRETS : { secrets: [secret], from: 'log' };
  }
  if (!existsSync(settings.localSecretFile)) return NO_SECRETS;
  return { secrets: readLocalSecret(settings.localSecretFile), from: 'local-file' };
}

const NO_SECRETS: KnownSecrets = { secrets: [], from: 'nowhere' };
